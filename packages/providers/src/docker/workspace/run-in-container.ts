import { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "../engine/engine.ts";

/** Programs report errors at the end of their output. */
const KEPT_CHARACTERS = 4096;
/** A program's output ends shortly before the engine knows its exit code. */
const END_INTERVAL_MS = 20;

export interface ContainerCommand {
  readonly argv: readonly string[];
  /** "uid:gid". */
  readonly user: string;
  /** Not visible to other clients of the engine. */
  readonly env: Readonly<Record<string, string>>;
  /** Ends the wait; the program keeps running. */
  readonly signal: AbortSignal;
}

/** Runs a program in a container through the engine, before there is a connection to the agent. */
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
