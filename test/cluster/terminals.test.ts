import { existsSync } from "node:fs";
import { Client, type Process, type Sandbox } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import type { ClusterNode } from "./cluster-node.ts";
import { handOff } from "./hand-off.ts";
import { startSharedBed } from "./shared-bed.ts";

const SIZE = { rows: 24, cols: 80 };

/** The output of a terminal; one handle reads all of it across handoffs. */
class Screen {
  readonly process: Process;
  #text = "";

  constructor(process: Process) {
    this.process = process;
    this.#read();
  }

  static async open(sandbox: Sandbox, command: readonly string[]): Promise<Screen> {
    return new Screen(await sandbox.pty({ ...SIZE, command: [...command], env: { TERM: "xterm", PS1: "shell> " } }));
  }

  type(keys: string): Promise<void> {
    return this.process.write(keys);
  }

  /** Waits until the terminal has shown this since the last call. */
  async shows(expected: string | RegExp): Promise<void> {
    await expect.poll(() => this.#text).toMatch(expected);
    this.#text = "";
  }

  async #read(): Promise<void> {
    for await (const bytes of this.process.stdout) this.#text += Buffer.from(bytes).toString("latin1");
  }
}

describe("terminals that stay attached across handoffs", () => {
  it("keep a shell, a Python session with its variables, and a full-screen program", async (context) => {
    if (!existsSync("/usr/bin/top")) context.skip("this machine has no top");
    await using bed = await startSharedBed({ store: "s3" });
    const [first, second] = bed.nodes as [ClusterNode, ClusterNode];
    const { apiKey } = first;
    await using client = new Client({ url: bed.url, apiKey });
    const made = await first.client().sandboxes.create({ memoryMib: 256 });
    const sandbox = await client.sandboxes.connect(made.id);
    const shell = await Screen.open(sandbox, ["/bin/sh", "-i"]);
    const top = await Screen.open(sandbox, ["top", "-d", "0.3"]);
    await shell.shows("shell> ");
    await shell.type("python3 -q\r");
    await shell.shows(">>> ");
    await shell.type("held = 6 * 7\r");
    await shell.shows(">>> ");
    await top.shows(/PID +USER/);

    for (const [node, rows] of [
      [second, 30],
      [first, 40],
    ] as const) {
      await handOff(node, made.id, apiKey);
      await shell.type("print('held', held)\r");
      await shell.shows("held 42\r\n");
      // A resize redraws the whole page with all processes, also the other terminal's.
      await top.shows(/load average/);
      await top.process.resize({ rows, cols: 100 });
      await top.shows(/PID +USER.*python3/s);
    }
    await shell.type("exit()\r");
    await shell.shows("shell> ");
    await shell.type("exit 5\r");
    expect(await shell.process.wait()).toMatchObject({ exitCode: 5 });
    await top.type("q");
    expect(await top.process.wait()).toMatchObject({ exitCode: 0 });
  });

  it("keep unsaved text in an editor", async (context) => {
    if (!existsSync("/usr/bin/vim")) context.skip("this machine has no vim");
    await using bed = await startSharedBed({ store: "file" });
    const [first, second] = bed.nodes as [ClusterNode, ClusterNode];
    const { apiKey } = first;
    await using client = new Client({ url: bed.url, apiKey });
    const made = await first.client().sandboxes.create({ memoryMib: 256 });
    const sandbox = await client.sandboxes.connect(made.id);
    const vim = await Screen.open(sandbox, ["vim", "-u", "NONE", "-n", "/tmp/letter"]);
    // While vim draws its first page it reads keys without acting on them until the next one.
    await vim.shows(/letter.*~.*\[\?25h/s);
    await vim.type("ione\rtwo");
    await vim.shows("two");
    await handOff(second, made.id, apiKey);
    await vim.type("\rthree\x1b:wq\r");
    expect(await vim.process.wait()).toMatchObject({ exitCode: 0 });
    expect(await sandbox.files.readText("/tmp/letter")).toBe("one\ntwo\nthree\n");
  });
});
