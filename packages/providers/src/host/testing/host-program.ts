import { parseArgs } from "node:util";
import { type Provider, Sandbox } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";

/** What the program says on its stdout, one JSON line each. */
export type HostProgramMessage =
  | { readonly creating: SandboxId }
  | { readonly ready: SandboxId; readonly process: string | undefined; readonly output: string };

const text = { type: "string" } as const;

/** The body of a program that makes or adopts a sandbox, runs a command in it, reads some of its output, and is killed by a test. */
export async function runHostProgram(makeProvider: (options: object) => Provider): Promise<void> {
  const options = { provider: text, config: text, adopt: text, command: text, read: text };
  const { values } = parseArgs({ options });
  const provider = makeProvider(JSON.parse(values.provider ?? "{}"));
  const sandbox = await (values.adopt === undefined
    ? create(provider, JSON.parse(values.config ?? "{}"))
    : Sandbox.adopt(provider, values.adopt as SandboxId));
  const started = values.command === undefined ? undefined : await sandbox.start(values.command);
  let output = "";
  const readBytes = Number(values.read ?? 0);
  if (started !== undefined && readBytes > 0) {
    for await (const { bytes } of started.output) {
      output += Buffer.from(bytes).toString();
      if (output.length >= readBytes) break;
    }
  }
  say({ ready: sandbox.id, process: started?.id, output });
  setInterval(() => {}, 60_000);
}

async function create(provider: Provider, config: object): Promise<Sandbox> {
  const id = createSandboxId();
  say({ creating: id });
  return await Sandbox.create(provider, config, { id });
}

function say(message: HostProgramMessage): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
