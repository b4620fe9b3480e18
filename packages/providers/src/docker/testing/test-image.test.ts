import { describe, expect, it } from "vitest";
import { shared } from "../../host/testing/shared.ts";
import { connectTo } from "./connect.ts";
import { startDockerd } from "./dockerd.ts";
import { importTestImage } from "./test-image.ts";

const engine = await shared(connectTo(await shared(startDockerd())));

describe("images for tests", () => {
  it.each([
    ["base", "bash -c 'id -un 1000 && awk 1 /etc/passwd | grep -c user'", "user\n1\n"],
    ["tiny", "ls /bin/bash 2>/dev/null; id -u", "0\n"],
    ["git", "git init --quiet --template= /tmp/a && ls -a /tmp/a | grep git", ".git\n"],
    ["python", "python3 -c 'import json, socket; print(json.dumps([1]))'", "[1]\n"],
  ] as const)("run the programs of variant %s", async (variant, command, output) => {
    const image = await importTestImage(engine, { name: `test:${variant}`, variant });
    const container = await engine.docker.createContainer({ Image: image, Cmd: ["sh", "-c", command] });
    await container.start();
    await container.wait();
    const log = await container.logs({ stdout: true, stderr: true });
    expect(withoutHeaders(log)).toBe(output);
    await container.remove();
    const { Size } = await engine.docker.getImage(image).inspect();
    expect(Size).toBeLessThan(60_000_000);
  });

  it("have the requested configuration", async () => {
    const image = await importTestImage(engine, {
      name: "test:odd",
      user: "user",
      env: { GREETING: "hello" },
      entrypoint: ["/bin/echo"],
      architecture: "s390x",
    });
    expect(await engine.docker.getImage(image).inspect()).toMatchObject({
      Architecture: "s390x",
      Config: { User: "user", Entrypoint: ["/bin/echo"], Env: expect.arrayContaining(["GREETING=hello"]) },
    });
  });
});

function withoutHeaders(log: Buffer): string {
  let text = "";
  for (let at = 0; at < log.length; ) {
    const size = log.readUInt32BE(at + 4);
    text += log.toString("utf8", at + 8, at + 8 + size);
    at += 8 + size;
  }
  return text;
}
