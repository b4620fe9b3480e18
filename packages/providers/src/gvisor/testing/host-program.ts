import { parseArgs } from "node:util";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { GvisorProvider } from "../provider.ts";

/** What the program says on its stdout, one JSON line each. */
export type HostProgramMessage =
  | { readonly creating: SandboxId }
  | { readonly ready: SandboxId; readonly process: string | undefined; readonly output: string };

// A program that makes or adopts a sandbox, runs a command in it, reads some of its output, and is killed by a test.
const text = { type: "string" } as const;
const { values } = parseArgs({ options: { state: text, config: text, adopt: text, command: text, read: text } });
const provider = new GvisorProvider({ stateDirectory: String(values.state) });
const sandbox = await (values.adopt === undefined ? create() : Sandbox.adopt(provider, values.adopt as SandboxId));
const started = values.command === undefined ? undefined : await sandbox.start(values.command);
say({ ready: sandbox.id, process: started?.id, output: await readOutput(Number(values.read ?? 0)) });
setInterval(() => {}, 60_000);

async function readOutput(sizeBytes: number): Promise<string> {
  let output = "";
  if (started === undefined || sizeBytes === 0) return output;
  for await (const { bytes } of started.output) {
    output += Buffer.from(bytes).toString();
    if (output.length >= sizeBytes) break;
  }
  return output;
}

async function create(): Promise<Sandbox> {
  const id = createSandboxId();
  say({ creating: id });
  return await Sandbox.create(provider, { diskMib: 64, ...JSON.parse(values.config ?? "{}") }, { id });
}

function say(message: HostProgramMessage): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}
