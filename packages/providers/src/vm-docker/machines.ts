import { open } from "node:fs/promises";
import { type MachineInfo, type Machines, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { VmInfo } from "./vm/project-vm.ts";
import type { ProjectVms } from "./vm/project-vms.ts";

const CONSOLE_BYTES = 16 * 1024;

/** The machines of this program, for their users and the operator. */
export class VmDockerMachines implements Machines {
  readonly #vms: ProjectVms;
  /** Adopts the machines of ended programs first. */
  readonly #enter: () => Promise<void>;

  constructor(vms: ProjectVms, enter: () => Promise<void>) {
    this.#vms = vms;
    this.#enter = enter;
  }

  async list(): Promise<readonly MachineInfo[]> {
    await this.#enter();
    return this.#vms.list().map(({ id, projectId, state, sessions, startedAt, error }) => ({
      id,
      project: projectId,
      state,
      sandboxes: sessions as readonly SandboxId[],
      ...this.#vms.resources,
      startedAt,
      error,
    }));
  }

  async readConsole(id: string): Promise<string> {
    const { consoleLog } = this.#find(id);
    return consoleLog === undefined ? "" : await readEnd(consoleLog);
  }

  async stop(id: string): Promise<void> {
    await this.#vms.removeVm(this.#find(id).projectId);
  }

  #find(id: string): VmInfo {
    const found = this.#vms.list().find((info) => info.id === id);
    if (found !== undefined) return found;
    throw new SandboxError("no_such_machine", {
      message: `machine ${id} not found`,
      hint: "list the machines of this host",
    });
  }
}

/** The file may be removed at any time, together with its machine. */
async function readEnd(path: string): Promise<string> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return "";
  try {
    const { size } = await file.stat();
    const from = Math.max(0, size - CONSOLE_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
