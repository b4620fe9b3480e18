import { appendFileSync, copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findAgent } from "../../packages/providers/src/host/find-agent.ts";
import { findRunsc } from "../../packages/providers/src/host/find-runsc.ts";

/** The programs that a package manager installs and replaces: runsc and the agent. */
export class InstalledPrograms implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), "sandpiper-installed-"));
  readonly env: Readonly<Record<string, string>> = {
    SANDPIPER_RUNSC: join(this.#directory, "runsc"),
    SANDPIPER_AGENT: join(this.#directory, "agent"),
    // Without the build that set-up cached.
    XDG_CACHE_HOME: join(this.#directory, "cache"),
  };
  readonly release: string;

  private constructor(release: string, runsc: string) {
    this.release = release;
    copyFileSync(runsc, join(this.#directory, "runsc"));
    copyFileSync(findAgent(), join(this.#directory, "agent"));
  }

  static async install(): Promise<InstalledPrograms> {
    const found = await findRunsc(undefined);
    if ("reason" in found) throw new Error(found.reason);
    return new InstalledPrograms(found.build, found.path);
  }

  /**
   * Replaces both programs with the next release, and returns its name. It is the same code with another version: gVisor compares
   * the versions, and refuses the images of every other one.
   */
  upgrade(): string {
    const next = `${Number(this.release.slice(0, 8)) + 1}${this.release.slice(8)}`;
    const path = join(this.#directory, "runsc");
    const draft = `${path}.new`;
    const bytes = readFileSync(path);
    const name = Buffer.from(this.release);
    for (let at = bytes.indexOf(name); at !== -1; at = bytes.indexOf(name, at + 1)) bytes.write(next, at, "latin1");
    writeFileSync(draft, bytes, { mode: 0o755 });
    renameSync(draft, path);
    const agent = join(this.#directory, "agent");
    copyFileSync(agent, `${agent}.new`);
    appendFileSync(`${agent}.new`, "another build");
    renameSync(`${agent}.new`, agent);
    return next;
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
