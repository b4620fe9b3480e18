import { Session } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { GvisorHome } from "../node/gvisor-home.ts";
import { NodeProcess } from "../node/node-process.ts";
import { countTo, numbersTo } from "../node/numbered-output.ts";

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

  it("receives the whole output of its session once, and runs the next code in it", async () => {
    await using home = new GvisorHome();
    const first = await NodeProcess.start({ home: home.path, port: 0 });
    const { url } = first.started;
    await using session = await Session.create({ url, apiKey: first.started.apiKey, memoryMib: 128 });
    let text = "";
    const reached = Promise.withResolvers<void>();
    const running = session.run("bash", countTo(100), {
      onStdout: (piece) => {
        text += piece;
        if (text.includes("\n5\n")) reached.resolve();
      },
    });
    await reached.promise;
    await first.kill();
    await using _second = await NodeProcess.start({ home: home.path, port: Number(new URL(url).port) });
    expect(await running).toMatchObject({ stdout: numbersTo(100), exitCode: 0, truncated: false });
    expect((await session.run("bash", "echo next")).stdout).toBe("next\n");
    await session.destroy();
  });
});
