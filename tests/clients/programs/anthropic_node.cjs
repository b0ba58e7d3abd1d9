// Calls of the npm package @anthropic-ai/sdk, of the door that the variables of `anthropic_python.py` name; argument: its model.
const assert = require("node:assert");
const { Anthropic, AuthenticationError } = require("@anthropic-ai/sdk");

const model = process.argv[2];
const messages = [{ role: "user", content: "Name a colour." }];
const client = new Anthropic({ maxRetries: 0, timeout: 60000 });
const { VERSION: version } = require("@anthropic-ai/sdk/version");

const passing = {
  "messages create": async () => {
    const answer = await client.messages.create({ model, messages, max_tokens: 8 });
    assert.ok(answer.content[0].text);
    assert.strictEqual(answer.usage.output_tokens, 8);
  },
  "messages stream": async () => {
    const stream = client.messages.stream({ model, messages, max_tokens: 8 });
    let text = "";
    stream.on("text", (part) => (text += part));
    const answer = await stream.finalMessage();
    assert.strictEqual(text, answer.content[0].text);
    assert.strictEqual(answer.usage.output_tokens, 8);
  },
  "messages stream closed early": async () => {
    const stream = await client.messages.create({ model, messages, max_tokens: 512, stream: true });
    for await (const event of stream) {
      if (event.type === "content_block_delta") break;
    }
    stream.controller.abort();
    assert.ok((await client.messages.create({ model, messages, max_tokens: 4 })).content.length);
  },
  "count tokens": async () => {
    assert.ok((await client.messages.countTokens({ model, messages })).input_tokens > 0);
  },
};

async function main() {
  const report = (call, text) =>
    console.log(JSON.stringify({ client: `@anthropic-ai/sdk (npm) ${version}`, call, outcome: text ? "failed" : "passed", text }));
  for (const [call, run] of Object.entries(passing)) {
    await run().then(() => report(call, ""), (error) => report(call, `${error.name}: ${error.message}`.slice(0, 1000)));
  }
  const wrong = new Anthropic({ apiKey: "sk-wrong", maxRetries: 0 });
  const text = await wrong.messages.create({ model, messages, max_tokens: 2 }).then(
    () => "it was accepted",
    (error) => (error instanceof AuthenticationError ? "" : `${error.name}: ${error.message}`),
  );
  report("wrong key", text);
}

main();
