// Calls of Google's npm packages for Cloud Run and Secret Manager over REST, which take a host and a port but no path.
const assert = require("node:assert");
const { SecretManagerServiceClient } = require("@google-cloud/secret-manager");
const { protos, v2 } = require("@google-cloud/run");

const address = new URL(process.env.GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT);
const options = { fallback: "rest", protocol: "http", apiEndpoint: address.hostname, port: Number(address.port) };
const parent = `projects/${process.env.GOOGLE_CLOUD_PROJECT}`;
const location = `${parent}/locations/us-east4`;
const secrets = new SecretManagerServiceClient(options);
const services = new v2.ServicesClient(options);
const pools = new v2.WorkerPoolsClient(options);
const { State } = protos.google.cloud.run.v2.Condition;
const name = `${parent}/secrets/tried-by-node`;

const withSecrets = {
  createSecret: async () => {
    const secret = { replication: { automatic: {} }, labels: { tried: "yes" } };
    const [made] = await secrets.createSecret({ parent, secretId: "tried-by-node", secret });
    assert.deepStrictEqual(made.labels, { tried: "yes" });
  },
  addSecretVersion: async () => {
    const [made] = await secrets.addSecretVersion({ parent: name, payload: { data: Buffer.from("pa\u00df") } });
    assert.strictEqual(made.state, "ENABLED");
  },
  accessSecretVersion: async () => {
    const [got] = await secrets.accessSecretVersion({ name: `${name}/versions/latest` });
    assert.strictEqual(Buffer.from(got.payload.data).toString(), "pa\u00df");
  },
  listSecrets: async () => {
    const found = [];
    for await (const secret of secrets.listSecretsAsync({ parent, pageSize: 1 })) found.push(secret.labels.tried);
    assert.ok(found.includes("yes"));
  },
  updateSecret: async () => {
    const [got] = await secrets.updateSecret({ secret: { name, labels: {} }, updateMask: { paths: ["labels"] } });
    assert.deepStrictEqual(got.labels, {});
  },
  setIamPolicy: async () => {
    const [current] = await secrets.getIamPolicy({ resource: name });
    const bindings = [{ role: "roles/secretmanager.viewer", members: ["allAuthenticatedUsers"] }];
    const [changed] = await secrets.setIamPolicy({ resource: name, policy: { etag: current.etag, bindings } });
    assert.strictEqual(changed.bindings[0].role, "roles/secretmanager.viewer");
  },
  "getSecret of no secret": async () => {
    await assert.rejects(secrets.getSecret({ name: `${name}x` }), /NOT_FOUND/);
  },
  deleteSecret: async () => {
    await secrets.deleteSecret({ name });
  },
};

const withServices = {
  createService: async () => {
    const limits = { cpu: "8", memory: "32Gi", "nvidia.com/gpu": "1" };
    const containers = [{ image: process.env.TRIED_IMAGE, resources: { limits } }];
    const template = {
      containers,
      serviceAccount: `runtime@${process.env.GOOGLE_CLOUD_PROJECT}.iam.gserviceaccount.com`,
      nodeSelector: { accelerator: "nvidia-l4" },
      gpuZonalRedundancyDisabled: true,
      scaling: { maxInstanceCount: 1 },
    };
    const [operation] = await services.createService({ parent: location, serviceId: "by-node", service: { template } });
    const [made] = await operation.promise();
    assert.strictEqual(made.terminalCondition.state, State.CONDITION_SUCCEEDED);
  },
  getService: async () => {
    const [got] = await services.getService({ name: `${location}/services/by-node` });
    assert.strictEqual(got.ingress, "INGRESS_TRAFFIC_ALL");
  },
  listServices: async () => {
    const [found] = await services.listServices({ parent: location });
    assert.ok(found.some((service) => service.name.endsWith("/by-node")));
  },
  listWorkerPools: async () => {
    await pools.listWorkerPools({ parent: location });
  },
  deleteService: async () => {
    const [operation] = await services.deleteService({ name: `${location}/services/by-node` });
    await operation.promise();
  },
};

async function main() {
  for (const [client, calls] of [["@google-cloud/secret-manager", withSecrets], ["@google-cloud/run", withServices]]) {
    const { version } = require(`${client}/package.json`);
    for (const [call, action] of Object.entries(calls)) {
      let [outcome, text] = ["passed", ""];
      try {
        await action();
      } catch (error) {
        const refusal = /localcloud does not serve [^(]*[^ (]/.exec(error.message);
        [outcome, text] = refusal ? ["not served", refusal[0]] : ["failed", `${error.name}: ${error.message}`];
      }
      console.log(JSON.stringify({ client: `${client} ${version}`, call, outcome, text }));
    }
  }
}

main();
