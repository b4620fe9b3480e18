import { readFile } from "node:fs/promises";
import { Agent } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "@sandpiper/sdk";
import { NodeProcess } from "../../test/node/node-process.ts";
import { guestPrograms } from "../guest-programs.ts";
import { sendJson } from "../send-json.ts";
import { makeStaticImage } from "../static-image.ts";
import { EXEC_INSTANCES, nextInTurn, type SubjectDefinition } from "../subject.ts";
import { repeated, timed, timeTrue } from "../timed-run.ts";

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
    const { client, started } = workspace.own(await NodeProcess.start({ home, port: 0, logLevel: "warn" }));
    await makeStaticImage(workspace, join(home, "images", IMAGE));
    const program = await readFile((await guestPrograms(workspace)).true);
    const sandboxes: Sandbox[] = [];
    for (let k = 0; k < EXEC_INSTANCES; k++) {
      const sandbox = workspace.own(await client.sandboxes.create());
      await sandbox.files.write(TRUE_PATH, program, { mode: 0o755 });
      sandboxes.push(sandbox);
    }
    workspace.defer(() => client.pools.set({ image: IMAGE, target: 0 }));
    const agent = new Agent({ keepAlive: true });
    workspace.defer(() => agent.destroy());
    const headers = { authorization: `Bearer ${started.apiKey}` };
    const post = <Answer>(path: string, body: object) =>
      sendJson<Answer>(started.url + path, { method: "POST", agent, headers }, body);
    return {
      /** Plain HTTP on a persistent connection: one request creates the sandbox, another runs the command. */
      async createToFirstOutput() {
        while ((await client.pools.set({ image: IMAGE, target: WARM })).ready < WARM) await sleep(POLL_MS);
        const startedAt = performance.now();
        const { id } = await post<{ id: string }>("/v1/sandboxes", { image: IMAGE });
        const { stdout } = await post<{ stdout: string }>(`/v1/sandboxes/${id}/exec`, { argv: ["/bin/say"] });
        const tookMs = performance.now() - startedAt;
        if (stdout !== "ready\n") throw new Error(`say in ${id} printed ${JSON.stringify(stdout)}`);
        await (await client.sandboxes.connect(id)).destroy();
        return tookMs;
      },

      execTrue: (count, restMs) => timeTrue(nextInTurn(sandboxes), TRUE_PATH, { count, restMs }),

      async execMany(count) {
        const sandbox = nextInTurn(sandboxes);
        const run = () => sandbox.exec([TRUE_PATH]);
        const inARowMs = await timed(() => repeated(count, run));
        return { inARowMs, atOnceMs: await timed(() => Promise.all(Array.from({ length: count }, run))) };
      },
    };
  },
};
