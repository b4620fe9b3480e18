// Runs code in a session while its sandbox moves between two nodes, and asserts that no output is lost or repeated.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger, parseNodeConfig, startNode } from "@sandpiper/node/server";
import { Session } from "@sandpiper/sdk";

const directory = mkdtempSync(join(tmpdir(), "sandpiper-session-"));

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

/** A node of a cluster of two; both share a store. Deployed nodes run on machines of their own. */
async function startClusterNode(name: string) {
  const store = `file://${join(directory, "store")}`;
  const options = { home: join(directory, name), port: await freePort(), store, clusterSecret: "shared-by-both-nodes" };
  const logger = createLogger({ logLevel: "silent", logFormat: "json" });
  return await startNode(parseNodeConfig({ ...options, defaultProvider: "gvisor" }), { logger });
}

const first = await startClusterNode("first");
const second = await startClusterNode("second");
try {
  const apiKey = readFileSync(first.apiKeyFile, "utf8").trim();
  const session = await Session.create({ url: first.url, apiKey, memoryMib: 256 });
  const { stdout } = await session.run("python", "print('hello')");
  console.log(stdout.trim());
  assert.equal(stdout, "hello\n");

  const execution = session.start("bash", "for i in $(seq 1 200); do echo $i; sleep 0.01; done");
  let text = "";
  for await (const output of execution) {
    text += output.text;
    if (text.includes("\n50\n")) break;
  }
  // These are all that another program, or this one after a restart, needs to continue.
  const { id, token } = session;
  const resume = { execution: execution.id, next: execution.next };
  await session.close();

  // The sandbox moves to the second node, with its running code.
  await using moved = await Session.attach(id, { url: second.url, token, resume });
  for await (const output of moved.execution ?? []) text += output.text;
  assert.equal(text, Array.from({ length: 200 }, (_, at) => `${at + 1}\n`).join(""));
  console.log(`read ${text.split("\n").length - 1} lines on two nodes, each once`);
  await moved.destroy();
} finally {
  await first.stop();
  await second.stop();
  rmSync(directory, { recursive: true });
}
