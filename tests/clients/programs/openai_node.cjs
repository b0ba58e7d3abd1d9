// Calls of the npm package openai, of the service that the variables of `openai_python.py` name; argument: its model.
const assert = require("node:assert");
const OpenAI = require("openai");
const { zodResponseFormat } = require("openai/helpers/zod");
const { z } = require("zod");

const model = process.argv[2];
const messages = [{ role: "user", content: "Name a colour." }];
const parameters = { type: "object", properties: { town: { type: "string" } }, required: ["town"] };
const tools = [{ type: "function", function: { name: "weather", parameters } }];
const client = new OpenAI({ maxRetries: 0, timeout: 60000 });
const { VERSION: version } = require("openai/version");

const passing = {
  "models list": async () => {
    const found = [];
    for await (const entry of client.models.list()) found.push(entry.id);
    assert.deepStrictEqual(found, [model]);
  },
  "completions create": async () => {
    const answer = await client.completions.create({ model, prompt: "Once", max_tokens: 8 });
    assert.strictEqual(answer.usage.completion_tokens, 8);
  },
  "chat create": async () => {
    const answer = await client.chat.completions.create({ model, messages, max_completion_tokens: 8 });
    assert.ok(answer.choices[0].message.content);
    assert.strictEqual(answer.usage.completion_tokens, 8);
  },
  "chat stream with usage": async () => {
    const options = { model, messages, max_tokens: 8, stream: true, stream_options: { include_usage: true } };
    let text = "";
    let last;
    for await (const chunk of await client.chat.completions.create(options)) {
      text += chunk.choices[0]?.delta?.content ?? "";
      last = chunk;
    }
    assert.ok(text);
    assert.strictEqual(last.usage.completion_tokens, 8);
  },
  "chat stream closed early": async () => {
    const stream = await client.chat.completions.create({ model, messages, max_tokens: 512, stream: true });
    for await (const chunk of stream) {
      assert.ok(chunk.id);
      break;
    }
    stream.controller.abort();
    assert.ok((await client.chat.completions.create({ model, messages, max_tokens: 4 })).choices.length);
  },
  "chat stream by events": async () => {
    const stream = client.chat.completions.stream({ model, messages, max_tokens: 8 });
    assert.ok((await stream.finalChatCompletion()).choices[0].message.content);
  },
  "chat parse": async () => {
    const format = zodResponseFormat(z.object({ name: z.string(), red: z.number() }), "colour");
    const options = { model, messages, max_tokens: 400, response_format: format };
    const answer = await client.chat.completions.parse(options);
    assert.strictEqual(typeof answer.choices[0].message.parsed.name, "string");
  },
  "chat create with tools": async () => {
    const options = { model, messages, max_tokens: 400, tools, tool_choice: "required" };
    const answer = await client.chat.completions.create(options);
    assert.strictEqual(answer.choices[0].message.tool_calls[0].function.name, "weather");
  },
  "responses create": async () => {
    const answer = await client.responses.create({ model, input: "Name a colour.", max_output_tokens: 8 });
    assert.ok(answer.output_text);
  },
  "responses stream": async () => {
    const options = { model, input: "Name a colour.", max_output_tokens: 8, stream: true };
    const types = [];
    for await (const event of await client.responses.create(options)) types.push(event.type);
    assert.strictEqual(types[0], "response.created");
    assert.ok(types.includes("response.output_text.delta"));
  },
  "eight at once": async () => {
    const create = () => client.chat.completions.create({ model, messages, max_tokens: 4 });
    assert.strictEqual((await Promise.all(Array.from({ length: 8 }, create))).length, 8);
  },
};
const stranger = new OpenAI({ apiKey: "sk-wrong", maxRetries: 0 });
const raising = {
  "unknown model": [OpenAI.NotFoundError, () => client.chat.completions.create({ model: "gpt-5", messages })],
  "negative limit": [
    OpenAI.BadRequestError,
    () => client.chat.completions.create({ model, messages, max_tokens: -1 }),
  ],
  "wrong key": [OpenAI.AuthenticationError, () => stranger.models.list()],
};

function report(call, text) {
  const outcome = text ? "failed" : "passed";
  console.log(JSON.stringify({ client: `openai (npm) ${version}`, call, outcome, text: text.slice(0, 1000) }));
}

async function main() {
  for (const [name, call] of Object.entries(passing)) {
    await call().then(
      () => report(name, ""),
      (error) => report(name, `${error.stack}`),
    );
  }
  for (const [name, [kind, call]] of Object.entries(raising)) {
    await call().then(
      () => report(name, "it was accepted"),
      (error) => report(name, error instanceof kind ? "" : `${error.stack}`),
    );
  }
}

main();
