import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Haproxy } from "./haproxy.ts";

/** Forwards connections from `bind` to `target`. Each side is in its namespace, or on this machine. */
export interface Door {
  readonly name: string;
  readonly bind: string;
  readonly bindNamespace?: string;
  readonly target: string;
  readonly targetNamespace?: string;
}

/** Opens doors until the bed in this directory is removed. */
export async function openDoors(directory: string, doors: readonly Door[]): Promise<void> {
  const [configFile, adminSocket] = [join(directory, "doors.cfg"), join(directory, "doors.sock")];
  writeFileSync(configFile, doorsConfig(doors, adminSocket));
  await Haproxy.start({ configFile, adminSocket });
}

/**
 * A test and the store's server are outside the bed's network. HAProxy can open sockets in other namespaces, so a second
 * HAProxy forwards TCP connections between them.
 */
function doorsConfig(doors: readonly Door[], adminSocket: string): string {
  const passages = doors.map(
    ({ name, bind, bindNamespace, target, targetNamespace }) => `
listen ${name}
    bind ${bind}${bindNamespace === undefined ? "" : ` namespace ${bindNamespace}`}
    server ${name} ${target}${targetNamespace === undefined ? "" : ` namespace ${targetNamespace}`}
`,
  );
  return `global
    stats socket ${adminSocket} mode 600 level admin

defaults
    mode tcp
    timeout connect 2s
    timeout client 1h
    timeout server 1h
    timeout tunnel 1h
    retries 0
${passages.join("")}`;
}

/** Process ids have 22 bits and loopback addresses 24: each test process of this machine gets its own address. */
export function ownLoopbackAddress(): string {
  const { pid } = process;
  return `127.${64 + (pid >> 16)}.${(pid >> 8) & 255}.${pid & 255}`;
}
