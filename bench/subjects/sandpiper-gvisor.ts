import { createReadStream } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Sandbox, UPLOAD_PIECE_BYTES } from "@sandpiper/core";
import { createSandbox } from "@sandpiper/node";
import { guestPrograms } from "../guest-programs.ts";
import { settledMemory } from "../processes.ts";
import { makeStaticImage } from "../static-image.ts";
import { EXEC_INSTANCES, nextInTurn, type SubjectDefinition } from "../subject.ts";
import { repeated, timed, timeTrue } from "../timed-run.ts";

const TRUE_PATH = "/tmp/true";
const FILE_PATH = "/tmp/file";
const FORGET_MS = 5;

export const subject: SubjectDefinition = {
  name: "sandpiper-gvisor",
  title: "Sandpiper's gvisor provider, embedded in a Node program, with its default image and limits",
  async open(workspace) {
    const home = await workspace.makeDir("sandpiper");
    const program = await readFile((await guestPrograms(workspace)).true);
    const sandboxes: Sandbox[] = [];
    for (let k = 0; k < EXEC_INSTANCES; k++) {
      const sandbox = workspace.own(await createSandbox({ home, signal: workspace.signal }));
      await sandbox.files.write(TRUE_PATH, program, { mode: 0o755 });
      sandboxes.push(sandbox);
    }
    const rootfs = await workspace.makeDir("static-image");
    await makeStaticImage(workspace, rootfs);
    /** Has docker's image. */
    const speaker = workspace.own(await createSandbox({ home, rootfs, signal: workspace.signal }));
    /** Receives the files. */
    const storage = nextInTurn(sandboxes);
    return {
      async createToReady() {
        const startedAt = performance.now();
        await using _ = await createSandbox({ home });
        return performance.now() - startedAt;
      },

      async createToFirstOutput() {
        const startedAt = performance.now();
        let tookMs: number | undefined;
        await using sandbox = await createSandbox({ home });
        const onStdout = () => {
          tookMs ??= performance.now() - startedAt;
        };
        await sandbox.exec(["/bin/echo", "ready"], { onStdout });
        if (tookMs === undefined) throw new Error(`echo in ${sandbox.id} printed nothing`);
        return tookMs;
      },

      execTrue: (count, restMs) => timeTrue(nextInTurn(sandboxes), TRUE_PATH, { count, restMs }),

      execSay: (count) =>
        repeated(count, async () => {
          const startedAt = performance.now();
          const { stdout } = await speaker.exec(["/bin/say"]);
          const tookMs = performance.now() - startedAt;
          if (stdout !== "ready\n") throw new Error(`say in ${speaker.id} printed ${JSON.stringify(stdout)}`);
          return tookMs;
        }),

      async ping(count) {
        const sandbox = nextInTurn(sandboxes);
        // A busy sandbox counts as healthy without a ping, and an exec is removed only after its result.
        await sleep(FORGET_MS);
        return await repeated(count, async () => {
          const startedAt = performance.now();
          const isHealthy = await sandbox.isHealthy();
          const tookMs = performance.now() - startedAt;
          if (!isHealthy) throw new Error(`sandbox ${sandbox.id} did not answer a ping`);
          return tookMs;
        });
      },

      writeFile: (hostPath) =>
        timed(() => storage.files.write(FILE_PATH, createReadStream(hostPath, { highWaterMark: UPLOAD_PIECE_BYTES }))),

      async readFile(hostPath) {
        const startedAt = performance.now();
        await using file = await open(hostPath, "w");
        for await (const bytes of storage.files.read(FILE_PATH, { lendsMemory: true })) await file.writeFile(bytes);
        return performance.now() - startedAt;
      },

      writeBytes: (bytes) => timed(() => storage.writeFile(FILE_PATH, bytes)),

      readBytes: (check) =>
        timed(async () => {
          let offset = 0;
          for await (const bytes of storage.files.read(FILE_PATH, { lendsMemory: true })) {
            check(bytes, offset);
            offset += bytes.length;
          }
        }),

      async idleMemory(count, signal) {
        await using live = new AsyncDisposableStack();
        const ids: string[] = [];
        while (ids.length < count) ids.push(live.use(await createSandbox({ home, signal })).id);
        return await settledMemory(ids);
      },
    };
  },
};
