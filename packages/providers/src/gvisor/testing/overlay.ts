import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "../../host/run-program.ts";

export interface Overlay extends AsyncDisposable {
  readonly path: string;
}

/** Mounts an overlayfs below the directory, as the root of a container is. */
export async function mountOverlay(directory: string): Promise<Overlay> {
  await using stack = new AsyncDisposableStack();
  const [layers, path] = [join(directory, "layers"), join(directory, "merged")];
  // In memory, because an overlayfs on an overlayfs cannot have an upper layer.
  stack.use(await mounted(layers, ["-t", "tmpfs", "layers"]));
  const [lower, upper, work] = ["lower", "upper", "work"].map((name) => join(layers, name));
  for (const layer of [lower, upper, work]) await mkdir(String(layer));
  const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
  stack.use(await mounted(path, ["-t", "overlay", "overlay", "-o", options]));
  const mounts = stack.move();
  return { path, [Symbol.asyncDispose]: () => mounts.disposeAsync() };
}

/** Mounts what the options of `mount` name. */
export async function mounted(path: string, options: readonly string[]): Promise<AsyncDisposable> {
  await mkdir(path, { recursive: true });
  await run("/bin/mount", ...options, path);
  return { [Symbol.asyncDispose]: () => run("/bin/umount", path) };
}

/** Runs a program that must succeed. */
export async function run(program: string, ...words: string[]): Promise<void> {
  const { exitCode, failure } = await runProgram([program, ...words]);
  if (exitCode !== 0) throw new Error(`${program} ${words.join(" ")}: exit code ${exitCode}: ${failure}`);
}
