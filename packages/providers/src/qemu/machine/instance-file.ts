import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

export const INSTANCE_FILE = "instance.txt";
const SEED_BYTES = 64;
/** The same for all: a guest that is a copy has looked at the size already. */
const FILE_BYTES = 512;

export interface GuestIdentity {
  readonly hostname: string;
  readonly maxProcesses: number;
}

/** What a guest is told of itself when it starts, and again when it finds that it is a copy. */
export async function writeInstanceFile(directory: string, { hostname, maxProcesses }: GuestIdentity): Promise<void> {
  const seed = randomBytes(SEED_BYTES).toString("hex");
  const text = `hostname ${hostname}\nseed ${seed}\nprocesses ${maxProcesses}\n`;
  await writeFile(join(directory, INSTANCE_FILE), text.padEnd(FILE_BYTES, "\n"), { mode: 0o600 });
}
