import { readFile } from "node:fs/promises";
import { Agent } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "@sandpiper/sdk";
import { NodeProcess } from "../../test/node/node-process.ts";
import { guestPrograms } from "../guest-programs.ts";
import { postJson } from "../post-json.ts";
import { makeStaticImage } from "../static-image.ts";
import { EXEC_INSTANCES, nextInTurn, type Subject, type SubjectDefinition } from "../subject.ts";
import { timed, timeTrue } from "../timed-run.ts";

const TRUE_PATH = "/tmp/true";
const IMAGE = "static";
/** Enough that a claim never finds the pool empty, few enough that refills do not load the machine. */
const WARM = 2;
const POLL_MS = 20;

export const subject: SubjectDefinition = {
  name: "sandpiper-node",
  title: "a Sandpiper node in a separate process: create over HTTP from its warm pool, exec through the SDK",
  async open(workspace) {
    const home = await workspace.makeDir("sandpiper-node");
    const node = workspace.own(await NodeProcess.start({ home, port: 0, logLevel: "warn" }));
    await makeStaticImage(workspace, join(home, "images", IMAGE));
    const program = await readFile((await guestPrograms(workspace)).true);
    const sandboxes: Sandbox[] = [];
    for (let k = 0; k < EXEC_INSTANCES; k++) {
      const sandbox = await node.client.sandboxes.create();
      await sandbox.files.write(TRUE_PATH, program, { mode: 0o755 });
      sandboxes.push(sandbox);
    }
    return new SandpiperNode(node, sandboxes);
  },
};

class SandpiperNode implements Subject {
  readonly #node: NodeProcess;
  readonly #sandboxes: Sandbox[];
  readonly #agent = new Agent({ keepAlive: true });

  constructor(node: NodeProcess, sandboxes: Sandbox[]) {
    this.#node = node;
    this.#sandboxes = sandboxes;
  }

  /** Plain HTTP on a persistent connection: one request creates the sandbox, another runs the command. */
  async createToFirstOutput(): Promise<number> {
    await this.#fillPool();
    const startedAt = performance.now();
    const { id } = (await this.#post("/v1/sandboxes", { image: IMAGE })) as { id: string };
    const { stdout } = (await this.#post(`/v1/sandboxes/${id}/exec`, { argv: ["/bin/say"] })) as { stdout: string };
    const tookMs = performance.now() - startedAt;
    if (stdout !== "ready\n") throw new Error(`say in ${id} printed ${JSON.stringify(stdout)}`);
    await (await this.#node.client.sandboxes.connect(id)).destroy();
    return tookMs;
  }

  execTrue(count: number, restMs: number): Promise<number[]> {
    return timeTrue(nextInTurn(this.#sandboxes), TRUE_PATH, { count, restMs });
  }

  async execMany(count: number): Promise<{ atOnceMs: number; inARowMs: number }> {
    const sandbox = nextInTurn(this.#sandboxes);
    const run = () => sandbox.exec([TRUE_PATH]);
    const inARowMs = await timed(async () => {
      for (let k = 0; k < count; k++) await run();
    });
    return { inARowMs, atOnceMs: await timed(() => Promise.all(Array.from({ length: count }, run))) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    await this.#node.client.pools.set({ image: IMAGE, target: 0 });
    for (const sandbox of this.#sandboxes) await sandbox.destroy();
  }

  async #fillPool(): Promise<void> {
    const { pools } = this.#node.client;
    while ((await pools.set({ image: IMAGE, target: WARM })).ready < WARM) await sleep(POLL_MS);
  }

  #post(path: string, body: object): Promise<unknown> {
    const { url, apiKey } = this.#node.started;
    return postJson(url + path, body, { agent: this.#agent, apiKey });
  }
}
