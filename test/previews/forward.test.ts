import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { GvisorHome } from "../node/gvisor-home.ts";
import { NodeProcess } from "../node/node-process.ts";
import { PORT, startServer } from "./preview-client.ts";

const program = fileURLToPath(new URL("../../packages/cli/bin/sandpiper", import.meta.url));

async function talk(port: number): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.end("GET /page HTTP/1.0\r\n\r\n");
  return Buffer.concat(await socket.toArray()).toString();
}

describe("sandpiper forward", () => {
  it("forwards several connections to a sandbox until Ctrl-C, and prints a URL of the same port", {
    timeout: 180_000,
  }, async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start(home.config());
    await using sandbox = await node.client.sandboxes.create({ name: "served" });
    await startServer(sandbox);
    const env = { ...process.env, SANDPIPER_URL: node.started.url, SANDPIPER_API_KEY: node.started.apiKey };
    const forward = spawn(program, ["forward", "served", `${PORT}:0`, "--json"], { env });
    try {
      const [line] = (await once(createInterface(forward.stdout), "line")) as [string];
      const { port, localPort, address } = JSON.parse(line);
      expect([port, address]).toEqual([PORT, `127.0.0.1:${localPort}`]);
      const answers = await Promise.all([talk(localPort), talk(localPort), talk(localPort)]);
      for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.\d 200 OK\r\n.*"path": "\/page"/s);
    } finally {
      forward.kill("SIGINT");
    }
    expect((await once(forward, "exit"))[0]).toBe(130);
    const url = spawn(program, ["url", "served", String(PORT)], { env });
    const printed = String(Buffer.concat(await url.stdout.toArray()));
    expect(printed).toMatch(new RegExp(`^http://${PORT}-${sandbox.id}\\.localhost:\\d+/\\?sandpiper_link=\\S+\\n$`));
  });
});
