import type { ProcessHandle } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { shared } from "../host/testing/shared.ts";
import { createDockerFixture } from "./testing/fixture.ts";
import { importTestImage } from "./testing/test-image.ts";

const fixture = await shared(createDockerFixture());
const sandbox = await fixture.create();

const pty = { rows: 24, cols: 80 };

describe("a terminal in a container", () => {
  it.each([
    ["root", "0:0"],
    ["user", "1000:1000"],
    ["1234:1235", "1234:1235"],
    ["65534", "65534:65534"],
  ])("runs as %s", async (user, ids) => {
    const shell = await sandbox.start(["/bin/sh"], { pty, user, stdin: true });
    await shell.write("stty -echo; echo ids=$(id -u):$(id -g); exit 3\n");
    expect(await readAll(shell)).toContain(`ids=${ids}\r\n`);
    expect(await shell.wait()).toMatchObject({ exitCode: 3 });
  });

  it("has the requested size, and can be resized", async () => {
    const shell = await sandbox.start(["/bin/sh"], { pty: { rows: 31, cols: 97 }, stdin: true });
    const output = shell.output[Symbol.asyncIterator]();
    await shell.write("stty size\n");
    await readUntil(output, "31 97");
    await shell.resize({ rows: 50, cols: 132 });
    await shell.write("stty size; tty; echo $TERM; exit\n");
    const rest = await readUntil(output, "xterm-256color");
    expect(rest).toContain("50 132");
    expect(rest).toContain("/dev/pts/");
    expect(await shell.wait()).toMatchObject({ exitCode: 0 });
  });
});

describe("the shell of a container", () => {
  /** The program of a terminal without a command. */
  const shellIn = async (image: string, env: Record<string, string> = {}) => {
    await using other = await fixture.create({ container: { image } });
    const shell = await other.start(undefined, { pty, env });
    await shell.write("exit 6\n");
    expect(await shell.wait()).toMatchObject({ exitCode: 6 });
    return (await other.process(shell.id)).argv;
  };

  it("is bash, and sh in an image without bash", async () => {
    const base = await importTestImage(fixture.engine, { name: "sandpiper-test:shell" });
    const tiny = await importTestImage(fixture.engine, { name: "sandpiper-test:tiny-shell", variant: "tiny" });
    expect(await shellIn(base)).toEqual(["/bin/bash"]);
    expect(await shellIn(tiny)).toEqual(["/bin/sh"]);
  });

  it("is the $SHELL of the image or of the caller, unless that cannot be executed", async () => {
    const env = { SHELL: "/usr/bin/sh" };
    const image = await importTestImage(fixture.engine, { name: "sandpiper-test:named-shell", env });
    expect(await shellIn(image)).toEqual(["/usr/bin/sh"]);
    expect(await shellIn(image, { SHELL: "/usr/bin/bash" })).toEqual(["/usr/bin/bash"]);
    expect(await shellIn(image, { SHELL: "/no/such/shell" })).toEqual(["/bin/bash"]);
  });
});

describe("the default user of a container", () => {
  it.each([
    ["", "1000:1000"],
    ["nobody", "65534:65534"],
    ["1234:1235", "1234:1235"],
    ["1234", "1234:1234"],
    ["nobody:user", "65534:65534"],
    ["0", "0:0"],
  ])("is its image's user %o", async (user, ids) => {
    const image = await importTestImage(fixture.engine, { name: "sandpiper-test:user", user });
    await using other = await fixture.create({ container: { image } });
    expect((await other.exec("echo $(id -u):$(id -g)")).stdout).toBe(`${ids}\n`);
    await other.writeFile("/tmp/mine", "mine");
    expect((await other.exec("stat -c %u:%g /tmp/mine")).stdout).toBe(`${ids}\n`);
  });
});

async function readAll({ output }: ProcessHandle): Promise<string> {
  return Buffer.concat(await Array.fromAsync(output, ({ bytes }) => bytes)).toString();
}

async function readUntil(output: AsyncIterator<{ readonly bytes: Uint8Array }>, wanted: string): Promise<string> {
  let text = "";
  while (!text.includes(wanted)) {
    const { value, done } = await output.next();
    if (done) throw new Error(`${JSON.stringify(text)} and no ${wanted}`);
    text += Buffer.from(value.bytes).toString();
  }
  return text;
}
