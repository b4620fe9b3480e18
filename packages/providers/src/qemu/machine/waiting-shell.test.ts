import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freshDirectory } from "../../host/testing/shared.ts";
import { hasEntered, QEMU_LOG, WaitingShell } from "./waiting-shell.ts";

const directory = freshDirectory("shell");
let shell: WaitingShell;
beforeEach(() => {
  shell = new WaitingShell({ GREETING: "hello" });
});
afterEach(() => shell.close());

/** The output of a shell that has become a script, once the script has ended. */
async function say(script: string, options: { readonly stateFile?: string; readonly entrance?: string } = {}) {
  const entrance = options.entrance ?? join(directory, "procs");
  const command = ["/bin/sh", "-c", script, "a word", "'; exit 3 #"];
  const child = shell.become({ directory, cgroupEntrances: [entrance], command, stateFile: options.stateFile });
  const entered = hasEntered(child);
  await ended(child);
  return { child, entered: await entered, said: await readFile(join(directory, QEMU_LOG), "utf8") };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

describe("WaitingShell", () => {
  it("becomes the command in its directory, with its state file, environment and literal arguments", async () => {
    const stateFile = join(directory, "state of it");
    await writeFile(stateFile, "saved\n");
    const { said } = await say('pwd; cat <&3; echo "$GREETING $0 $1" >&2; cat', { stateFile });
    expect(said).toBe(`${directory}\nsaved\nhello a word '; exit 3 #\n`);
  });

  it("enters its cgroup with its own process id, and reports whether it did", async () => {
    const { child, entered } = await say("true");
    expect(entered).toBe(true);
    expect(await readFile(join(directory, "procs"), "utf8")).toBe(`${child.pid}\n`);
    expect((await say("true", { entrance: join(directory, "missing/procs") })).entered).toBe(false);
  });

  it("starts the next shell before it is needed", async () => {
    await say("true");
    const waiting = childrenOf(process.pid);
    const { child } = await say("true");
    expect(waiting).toContain(child.pid);
    shell.close();
    await expect.poll(() => childrenOf(process.pid)).toEqual([]);
    await say("true");
    await expect.poll(() => childrenOf(process.pid)).toEqual([]);
  });

  it("refuses an argument that is not exactly one line", () => {
    for (const wrong of ["two\nlines", ""]) {
      const become = () => shell.become({ directory, cgroupEntrances: [], command: ["/bin/true", wrong] });
      expect(become).toThrow(expect.objectContaining({ reason: "unusable_path" }));
    }
  });

  it("neither keeps its program running nor outlives it", async () => {
    const source = pathToFileURL(join(import.meta.dirname, "waiting-shell.ts")).href;
    const program = `
      import { WaitingShell } from ${JSON.stringify(source)};
      const shell = new WaitingShell({ WAITS_FOR: ${JSON.stringify(directory)} });
      shell.become({ directory: ${JSON.stringify(directory)}, cgroupEntrances: [], command: ["/bin/true"] });
      setTimeout(() => console.log("ends"), 100);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await expect.poll(() => alive(directory).length).toBeGreaterThan(0);
    await once(child, "exit");
    await expect.poll(() => alive(directory)).toEqual([]);
  });
});

/** Children that have not ended. */
function childrenOf(parent: number): number[] {
  return processes().filter((pid) => {
    const [state, parentOf] = read(`/proc/${pid}/stat`)
      .replace(/^.*\) /, "")
      .split(" ");
    return state !== "Z" && Number(parentOf) === parent;
  });
}

/** Running processes with this value in their environment. */
function alive(environment: string): number[] {
  return processes().filter((pid) => read(`/proc/${pid}/environ`).includes(`WAITS_FOR=${environment}`));
}

function processes(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
