import { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "../engine/engine.ts";

/** The last words are where programs say what went wrong. */
const KEPT_CHARACTERS = 4096;
/** The output of a program ends a moment before the engine knows that the program has. */
const END_INTERVAL_MS = 20;

export interface ContainerCommand {
  readonly argv: readonly string[];
  /** "uid:gid". */
  readonly user: string;
  /** Only the program sees it: the engine shows it to nobody. */
  readonly env: Readonly<Record<string, string>>;
  /** Stops waiting; the program goes on until its container ends. */
  readonly signal: AbortSignal;
}

/** Runs a program in a running container through the engine, for what must happen before its agent is spoken to. */
export async function runInContainer(
  engine: Engine,
  container: string,
  { argv, user, env, signal }: ContainerCommand,
): Promise<{ readonly exitCode: number; readonly output: string }> {
  return await engine.call(`run ${argv[0]} in container ${container}`, async (docker) => {
    const exec = await docker.getContainer(container).exec({
      Cmd: [...argv],
      User: user,
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      AttachStdout: true,
      AttachStderr: true,
      abortSignal: signal,
    });
    const stream = await exec.start({ abortSignal: signal });
    let output = "";
    const sink = new Writable({
      write(chunk: Buffer, _encoding, done) {
        output = `${output}${chunk.toString()}`.slice(-KEPT_CHARACTERS);
        done();
      },
    });
    docker.modem.demuxStream(stream, sink, sink);
    await finished(stream, { signal });
    for (;;) {
      const { Running, ExitCode } = await exec.inspect({ abortSignal: signal });
      if (!Running && ExitCode !== null) return { exitCode: ExitCode, output };
      await sleep(END_INTERVAL_MS, undefined, { signal });
    }
  });
}
