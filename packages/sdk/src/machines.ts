import type { MachineDetails, MachineResource } from "@sandpiper/protocol";
import type { CallOptions } from "./call-options.ts";
import type { HttpTransport } from "./http/http-transport.ts";

export interface StopMachineOptions extends CallOptions {
  /** Stops the machine even if sandboxes use it; they fail. */
  readonly force?: boolean | undefined;
}

/** The virtual machines that the sandboxes of a project share on a node; in a cluster each node has its own. */
export class Machines {
  readonly #http: HttpTransport;

  constructor(http: HttpTransport) {
    this.#http = http;
  }

  async list({ signal }: CallOptions = {}): Promise<readonly MachineResource[]> {
    return (await this.#http.json<{ items: MachineResource[] }>("listMachines", { signal })).items;
  }

  /** With the end of the machine's console. */
  async get(id: string, { signal }: CallOptions = {}): Promise<MachineDetails> {
    return await this.#http.json("getMachine", { path: { machine: id }, signal });
  }

  /** Refused while a sandbox uses the machine, unless `force` is set. Caches stay. */
  async stop(id: string, { force = false, signal }: StopMachineOptions = {}): Promise<void> {
    await this.#http.empty("stopMachine", { path: { machine: id }, json: { force }, signal });
  }
}
