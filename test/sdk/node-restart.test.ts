import { describe, expect, it } from "vitest";
import { GvisorHome } from "../node/gvisor-home.ts";
import { NodeProcess } from "../node/node-process.ts";

describe("a client whose node is killed and restarted", () => {
  it("receives the whole output and the exit code of a command that was running", async () => {
    await using home = new GvisorHome();
    const first = await NodeProcess.start({ home: home.path, port: 0 });
    const { client } = first;
    const port = Number(new URL(first.started.url).port);
    const sandbox = await client.sandboxes.create();
    let lines = 0;
    const reached = Promise.withResolvers<void>();
    const running = sandbox.exec('i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo "line $i"; sleep 0.05; done; exit 7', {
      onStdout: (bytes) => {
        lines += bytes.filter((byte) => byte === 10).length;
        if (lines >= 5) reached.resolve();
      },
    });
    await reached.promise;
    await first.kill();
    await using _second = await NodeProcess.start({ home: home.path, port });
    const { stdout, exitCode, truncated } = await running;
    expect({ exitCode, truncated }).toEqual({ exitCode: 7, truncated: false });
    expect(stdout).toBe(Array.from({ length: 60 }, (_, at) => `line ${at + 1}\n`).join(""));
    await sandbox.destroy();
    client.close();
  });
});
