import type { Sandbox } from "@sandpiper/sdk";
import type { FuzzNode } from "./fuzz-node.ts";
import { placeholders } from "./valid-values.ts";

/** What inputs refer to: a sandbox with an ended process, which is replaced when an input has ended it. */
export class Bed {
  readonly node: FuzzNode;
  /** The id of an MCP session; empty if there is none. */
  session = "";
  #sandbox: Sandbox | undefined;
  #process = "";
  #isSuspect = true;

  constructor(node: FuzzNode) {
    this.node = node;
  }

  get sandboxId(): string {
    return this.#sandbox?.id ?? "";
  }

  get token(): string {
    return this.#sandbox?.token ?? "";
  }

  /** Makes `ready` look at everything again. */
  suspect(): void {
    this.#isSuspect = true;
  }

  /** Removes what inputs have created, and makes sure that the sandbox runs. */
  async ready(): Promise<void> {
    if (!this.#isSuspect) return;
    await this.#removeOthers();
    if (!(await this.#isIntact())) await this.renew();
    this.#isSuspect = false;
  }

  /** Replaces the sandbox, with all that inputs have stored in it. */
  async renew(): Promise<void> {
    const { client } = this.node;
    await this.#sandbox?.destroy().catch(() => {});
    this.#sandbox = await client.sandboxes.create({ provider: "mock" });
    this.#process = (await this.#sandbox.start("echo a")).id;
  }

  /** Uses the node as a client does. */
  async useOrdinarily(): Promise<void> {
    await this.renew();
    const { stdout, exitCode } = await (this.#sandbox as Sandbox).exec("echo hello");
    if (stdout !== "hello\n" || exitCode !== 0)
      throw new Error(`an ordinary command printed ${JSON.stringify(stdout)}`);
    if (!this.node.isAlive) throw new Error("the node has ended");
  }

  /** Replaces the placeholders of an input. */
  fill(text: string): string {
    return text
      .replaceAll(placeholders.sandbox, this.sandboxId)
      .replaceAll(placeholders.process, this.#process)
      .replaceAll(placeholders.session, this.session);
  }

  async #isIntact(): Promise<boolean> {
    try {
      const { id } = this.#sandbox as Sandbox;
      const sandbox = await this.node.client.sandboxes.connect(id);
      if (sandbox.state !== "ready") return false;
      return (await sandbox.processes()).some((process) => process.id === this.#process);
    } catch {
      return false;
    }
  }

  async #removeOthers(): Promise<void> {
    const { client, apiKey } = this.node;
    for await (const other of client.sandboxes.list()) {
      if (other.id !== this.sandboxId && other.state !== "destroyed") await other.destroy();
    }
    for (const { id } of await client.webhooks.list()) await client.webhooks.remove(id);
    for (const { id, revokedAt } of await client.keys.list()) {
      if (revokedAt === null && !apiKey.includes(id)) await client.keys.revoke(id);
    }
    for (const { key, target } of await client.pools.list())
      if (target > 0) await client.pools.set({ ...key, target: 0 });
  }
}
