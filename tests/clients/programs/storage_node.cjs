// Calls of Google's npm package for Cloud Storage; prints a JSON object a line for each call. It is pointed to
// an emulator by STORAGE_EMULATOR_HOST: with an address of one's own it gets tokens at Google's, whatever the key file says.
const assert = require("node:assert");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { pipeline } = require("node:stream/promises");
const { Readable } = require("node:stream");
const { Storage, TransferManager } = require("@google-cloud/storage");

const projectId = process.env.GOOGLE_CLOUD_PROJECT;
const storage = new Storage({ projectId });
const root = require.resolve("@google-cloud/storage").split("/build/")[0];
const { version } = JSON.parse(fs.readFileSync(path.join(root, "package.json")));
const client = `@google-cloud/storage (npm) ${version} by STORAGE_EMULATOR_HOST`;
const shelf = storage.bucket("by-node");
const file = (name) => shelf.file(name);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "node-"));
const large = Buffer.alloc(700 * 1024, "0123456789");
const local = path.join(folder, "local.bin");
fs.writeFileSync(local, large);
const text = async (name) => String((await file(name).download())[0]);
const reader = { role: "roles/storage.objectViewer", members: ["allAuthenticatedUsers"] };

const passing = {
  createBucket: async () => {
    const [made] = await storage.createBucket(shelf.name, { location: "us-east4", versioning: { enabled: true } });
    assert.strictEqual(made.name, shelf.name);
  },
  getBuckets: async () => {
    const [found] = await storage.getBuckets();
    assert.ok(found.map((one) => one.name).includes(shelf.name));
  },
  getServiceAccount: async () => {
    const [account] = await storage.getServiceAccount();
    assert.ok(account.emailAddress.includes("gs-project-accounts"));
  },
  "Bucket.exists": async () => assert.deepStrictEqual(await shelf.exists(), [true]),
  "Bucket.exists of none": async () => assert.deepStrictEqual(await storage.bucket("by-nobody").exists(), [false]),
  "Bucket.get": async () => assert.strictEqual((await shelf.get())[0].metadata.location, "US-EAST4"),
  "Bucket.getMetadata": async () => assert.strictEqual((await shelf.getMetadata())[0].name, shelf.name),
  "Bucket.setMetadata": async () => {
    await shelf.setMetadata({ cors: [{ origin: ["https://example.com"], method: ["GET"], maxAgeSeconds: 60 }] });
    assert.strictEqual((await shelf.getMetadata())[0].cors.length, 1);
  },
  "Bucket.setLabels": async () => {
    await shelf.setLabels({ tried: "yes" });
    assert.deepStrictEqual((await shelf.getLabels())[0], { tried: "yes" });
  },
  "Bucket.deleteLabels": async () => {
    await shelf.deleteLabels("tried");
    assert.deepStrictEqual((await shelf.getLabels())[0], {});
  },
  "Bucket.addLifecycleRule": async () => {
    await shelf.addLifecycleRule({ action: { type: "Delete" }, condition: { age: 9 } });
    assert.strictEqual((await shelf.getMetadata())[0].lifecycle.rule.length, 1);
  },
  "Bucket.setRetentionPeriod": async () => {
    await shelf.setRetentionPeriod(1);
    await shelf.removeRetentionPeriod();
    assert.strictEqual((await shelf.getMetadata())[0].retentionPolicy, undefined);
  },
  "Bucket.setStorageClass": async () => {
    await shelf.setStorageClass("nearline");
    await shelf.setStorageClass("standard");
    assert.strictEqual((await shelf.getMetadata())[0].storageClass, "STANDARD");
  },
  "Iam.getPolicy, setPolicy": async () => {
    const [policy] = await shelf.iam.getPolicy({ requestedPolicyVersion: 3 });
    policy.bindings.push(reader);
    const [set] = await shelf.iam.setPolicy(policy);
    assert.ok(set.bindings.some((one) => one.role === reader.role));
  },
  "Iam.testPermissions": async () => {
    const [held] = await shelf.iam.testPermissions(["storage.objects.get", "storage.buckets.delete"]);
    assert.deepStrictEqual(held, { "storage.objects.get": true, "storage.buckets.delete": true });
  },
  "File.save": async () => {
    await file("saved").save("pa\u00df", { contentType: "text/plain; charset=utf-8" });
    assert.strictEqual(await text("saved"), "pa\u00df");
  },
  "File.save, not resumable": async () => {
    await file("simple").save(large, { resumable: false, metadata: { metadata: { tried: "yes" } } });
    assert.ok((await file("simple").download())[0].equals(large));
    assert.strictEqual((await file("simple").getMetadata())[0].metadata.tried, "yes");
  },
  "File.save, resumable": async () => {
    await file("resumed").save(large, { resumable: true, validation: "md5" });
    assert.ok((await file("resumed").download({ validation: "md5" }))[0].equals(large));
  },
  "File.save in chunks": async () => {
    await file("chunked").save(large, { resumable: true, chunkSize: 256 * 1024 });
    assert.ok((await file("chunked").download())[0].equals(large));
  },
  "File.save, private": async () => {
    await file("private").save("mine", { private: true });
    assert.strictEqual(await text("private"), "mine");
  },
  "File.save of no bytes": async () => {
    await file("empty").save("");
    assert.strictEqual(await text("empty"), "");
  },
  "File.save, gzip": async () => {
    await file("zipped").save(large, { gzip: true });
    assert.ok((await file("zipped").download())[0].equals(large));
  },
  "File.createWriteStream": async () => {
    await pipeline(Readable.from([large, Buffer.from("end")]), file("streamed").createWriteStream());
    assert.strictEqual(Number((await file("streamed").getMetadata())[0].size), large.length + 3);
  },
  "File.createResumableUpload": async () => {
    const [uri] = await file("by-uri").createResumableUpload({ metadata: { contentType: "text/x-tried" } });
    await file("by-uri").save("by its address", { uri, resumable: true });
    assert.strictEqual(await text("by-uri"), "by its address");
    assert.strictEqual((await file("by-uri").getMetadata())[0].contentType, "text/x-tried");
  },
  "Bucket.upload": async () => {
    const [made] = await shelf.upload(local, { destination: "uploaded" });
    assert.strictEqual(Number(made.metadata.size), large.length);
  },
  "File.createReadStream of a range": async () => {
    const pieces = [];
    for await (const piece of file("uploaded").createReadStream({ start: 5, end: 14 })) pieces.push(piece);
    assert.strictEqual(String(Buffer.concat(pieces)), "5678901234");
  },
  "File.download to a file": async () => {
    await file("uploaded").download({ destination: path.join(folder, "down") });
    assert.ok(fs.readFileSync(path.join(folder, "down")).equals(large));
  },
  "File.download of none": async () => {
    await assert.rejects(file("none").download(), (error) => error.code === 404 || error.status === 404);
  },
  "File.save under a precondition": async () => {
    const once = { preconditionOpts: { ifGenerationMatch: 0 }, resumable: false };
    await assert.rejects(file("saved").save("again", once), (error) => (error.code || error.status) === 412);
  },
  "File.save with a customer's key": async () => {
    const locked = shelf.file("locked", { encryptionKey: Buffer.alloc(32, "k") });
    await locked.save("secret", { resumable: false });
    assert.strictEqual(String((await locked.download())[0]), "secret");
    await assert.rejects(file("locked").download());
  },
  "Bucket.getFiles": async () => {
    const [found] = await shelf.getFiles({ prefix: "s", maxResults: 2, autoPaginate: false });
    assert.deepStrictEqual(found.map((one) => one.name), ["saved", "simple"]);
  },
  "Bucket.getFilesStream": async () => {
    let count = 0;
    for await (const one of shelf.getFilesStream()) count += one.name ? 1 : 0;
    assert.ok(count > 8);
  },
  "File.exists": async () => {
    assert.deepStrictEqual([...(await file("saved").exists()), ...(await file("none").exists())], [true, false]);
  },
  "File.setMetadata": async () => {
    await file("saved").setMetadata({ cacheControl: "no-store", metadata: { a: "b" } });
    assert.strictEqual((await file("saved").getMetadata())[0].metadata.a, "b");
  },
  "File.copy": async () => {
    await file("saved").copy(file("a/copied"));
    assert.strictEqual(await text("a/copied"), "pa\u00df");
  },
  "File.move": async () => {
    await file("a/copied").move("a/moved");
    assert.deepStrictEqual(await file("a/copied").exists(), [false]);
  },
  "File.moveFileAtomic": async () => {
    await file("a/moved").moveFileAtomic("a/moved again");
    assert.strictEqual(await text("a/moved again"), "pa\u00df");
  },
  "File.rename": async () => {
    await file("a/moved again").rename("a/renamed");
    assert.strictEqual(await text("a/renamed"), "pa\u00df");
  },
  "Bucket.combine": async () => {
    await shelf.combine(["saved", "by-uri"], "combined");
    assert.strictEqual(await text("combined"), "pa\u00dfby its address");
  },
  "File.setStorageClass": async () => {
    await file("combined").setStorageClass("coldline");
    assert.strictEqual((await file("combined").getMetadata())[0].storageClass, "COLDLINE");
  },
  "File.get of a generation": async () => {
    const [before] = await file("saved").getMetadata();
    await file("saved").save("new", { resumable: false });
    const [old] = await shelf.file("saved", { generation: before.generation }).download();
    assert.strictEqual(String(old), "pa\u00df");
  },
  "TransferManager.uploadManyFiles": async () => {
    await new TransferManager(shelf).uploadManyFiles([local], { customDestinationBuilder: () => "many/one" });
    assert.strictEqual(Number((await file("many/one").getMetadata())[0].size), large.length);
  },
  "TransferManager.downloadFileInChunks": async () => {
    const parts = { destination: path.join(folder, "parts"), chunkSizeBytes: 300 * 1024 };
    await new TransferManager(shelf).downloadFileInChunks("many/one", parts);
    assert.ok(fs.readFileSync(path.join(folder, "parts")).equals(large));
  },
  "File.delete": async () => {
    await file("empty").delete();
    assert.deepStrictEqual(await file("empty").exists(), [false]);
  },
  "Bucket.deleteFiles": async () => {
    await shelf.deleteFiles({ force: true, versions: true });
    assert.deepStrictEqual((await shelf.getFiles({ versions: true }))[0], []);
  },
  "Bucket.delete": async () => {
    await shelf.delete();
    assert.deepStrictEqual(await shelf.exists(), [false]);
  },
};

// Access control lists, notifications and HMAC keys.
const refused = {
  "Acl.get": () => shelf.acl.get(),
  "File.makePublic": () => file("saved").makePublic(),
  "Bucket.getNotifications": () => shelf.getNotifications(),
  createHmacKey: () => storage.createHmacKey(`deployer@${projectId}.iam.gserviceaccount.com`),
  getHmacKeys: () => storage.getHmacKeys(),
};

async function report(call, action) {
  let [outcome, said] = ["passed", ""];
  try {
    await action();
  } catch (error) {
    [outcome, said] = ["failed", String((error && error.message) || error)];
    if (said.includes("localcloud does not serve")) outcome = "not served";
  }
  process.stdout.write(`${JSON.stringify({ client, call, outcome, text: said.slice(0, 1000) })}\n`);
}

async function main() {
  const all = Object.entries(passing);
  const written = all.findIndex(([name]) => name === "File.copy");
  const more = Object.entries(refused);
  for (const [name, action] of [...all.slice(0, written), ...more, ...all.slice(written)]) await report(name, action);
  fs.rmSync(folder, { recursive: true });
}

main();
