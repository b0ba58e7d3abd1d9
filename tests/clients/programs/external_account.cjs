// Calls of Google's npm package for Cloud Storage with credentials at an address of one's own; prints a JSON object a line
// for each call. Its resumable uploads leave the credentials out, whatever the option says, so it uploads in one request.
const assert = require("node:assert");
const fs = require("node:fs");
const { Storage } = require("@google-cloud/storage");

const apiEndpoint = process.env.API_ENDPOINT_OVERRIDE;
const projectId = process.env.GOOGLE_CLOUD_PROJECT;
const storage = new Storage({ apiEndpoint, projectId, useAuthWithCustomEndpoint: true });
const root = require.resolve("@google-cloud/storage").split("/build/")[0];
const { version } = JSON.parse(fs.readFileSync(`${root}/package.json`));
const shelf = storage.bucket("external-node");
const file = shelf.file("one");

const calls = {
  createBucket: () => shelf.create(),
  getBuckets: async () => assert.ok((await storage.getBuckets())[0].some((one) => one.name === shelf.name)),
  "File.save": () => file.save("hello", { resumable: false }),
  "File.download": async () => assert.strictEqual(String((await file.download())[0]), "hello"),
  "File.setMetadata": () => file.setMetadata({ metadata: { tried: "yes" } }),
  "File.copy": () => file.copy(shelf.file("two")),
  "Bucket.getFiles": async () => assert.strictEqual((await shelf.getFiles())[0].length, 2),
  "Bucket.deleteFiles": () => shelf.deleteFiles(),
  "Bucket.delete": () => shelf.delete(),
};

(async () => {
  for (const [call, run] of Object.entries(calls)) {
    let text = "";
    try {
      await run();
    } catch (error) {
      text = String(error.stack).slice(0, 800) || "failed";
    }
    const client = `@google-cloud/storage (npm) ${version}`;
    console.log(JSON.stringify({ client, call, outcome: text ? "failed" : "passed", text }));
  }
})();
