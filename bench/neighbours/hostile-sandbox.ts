import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Sandbox } from "@sandpiper/sdk";
import type { NodeProcess } from "../../test/node/node-process.ts";
import { ATTACK_PROGRAM, type Attack } from "./attacks.ts";
import type { HostileRequest } from "./hostile-client.ts";

/** A sandbox that attacks, and its owner in a separate process, so that its work does not slow the measuring client. */
export class HostileSandbox implements AsyncDisposable {
  readonly #sandbox: Sandbox;
  readonly #owner: ChildProcess;

  private constructor(sandbox: Sandbox, owner: ChildProcess) {
    this.#sandbox = sandbox;
    this.#owner = owner;
  }

  /** Resolves when the attack runs. */
  static async start({ client, started }: NodeProcess, program: string, attack: Attack): Promise<HostileSandbox> {
    const sandbox = await client.sandboxes.create();
    await sandbox.files.write(ATTACK_PROGRAM, await readFile(program), { mode: 0o755 });
    const request: HostileRequest = { url: started.url, apiKey: started.apiKey, id: sandbox.id, attack };
    const path = fileURLToPath(new URL("hostile-client.ts", import.meta.url));
    const owner = fork(path, [JSON.stringify(request)], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    const hostile = new HostileSandbox(sandbox, owner);
    const [message] = await Promise.race([once(owner, "message"), once(owner, "exit")]);
    if (message === "started") return hostile;
    await hostile[Symbol.asyncDispose]();
    throw new Error(`the attack "${attack.name}" did not start`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#owner.exitCode === null && this.#owner.signalCode === null) {
      const exited = once(this.#owner, "exit");
      this.#owner.kill("SIGKILL");
      await exited;
    }
    await this.#sandbox.destroy();
  }
}
