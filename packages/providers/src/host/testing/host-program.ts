import { type Provider, Sandbox } from "@sandpiper/core";
import type { HostProgramOptions, ReadyHostProgram } from "@sandpiper/core/testing";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";

/** The messages of the program on its stdout, one JSON line each. */
export type HostProgramMessage = { readonly creating: SandboxId } | { readonly ready: ReadyHostProgram };

/** The body of a program that creates or adopts a sandbox, runs a command in it and waits until a test kills it. */
export async function runHostProgram(makeProvider: (options: object) => Provider): Promise<void> {
  const [provider, options] = process.argv.slice(2).map((text) => JSON.parse(text)) as [object, HostProgramOptions];
  const id = createSandboxId();
  if (options.adopt === undefined) print({ creating: id });
  print({ ready: await useSandbox(makeProvider(provider), id, options) });
  setInterval(() => {}, 60_000);
}

/** Creates a sandbox with this id, or adopts one, and runs a command in it. */
export async function useSandbox(
  provider: Provider,
  id: SandboxId,
  { adopt, config = {}, command, readBytes = 0 }: HostProgramOptions,
): Promise<ReadyHostProgram> {
  const sandbox = await (adopt === undefined
    ? Sandbox.create(provider, config, { id })
    : Sandbox.adopt(provider, adopt));
  const started = command === undefined ? undefined : await sandbox.start(command);
  let output = "";
  if (started !== undefined && readBytes > 0) {
    for await (const { bytes } of started.output) {
      output += Buffer.from(bytes).toString();
      if (output.length >= readBytes) break;
    }
  }
  return { id: sandbox.id, process: started?.id, output };
}

function print(message: HostProgramMessage): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
