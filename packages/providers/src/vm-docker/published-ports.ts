import type { AddressInfo } from "node:net";
import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { Relay } from "./driver/relay.ts";
import type { Vm } from "./vm/vm-driver.ts";

const LOOPBACK = "127.0.0.1";

export interface PublishedPortsOptions {
  readonly vm: Pick<Vm, "dial" | "projectId">;
  /** The current address of a sandbox's port on the machine's own loopback; it changes when the container restarts. */
  readonly addressOf: (id: SandboxId, port: string) => Promise<string | undefined>;
}

/** Makes the published ports of a machine's sandboxes reachable on this host's loopback. */
export class PublishedPorts {
  readonly #options: PublishedPortsOptions;
  readonly #relays = new Map<SandboxId, ReadonlyMap<string, Relay>>();

  constructor(options: PublishedPortsOptions) {
    this.#options = options;
  }

  /** The addresses on this host, by port inside. */
  of(id: SandboxId): Readonly<Record<string, string>> {
    const relays = [...(this.#relays.get(id) ?? [])];
    return Object.fromEntries(relays.map(([port, relay]) => [port, `${LOOPBACK}:${portOf(relay)}`]));
  }

  /** Takes the addresses inside the machine. Uses the same numbers on this host where they are free. */
  async publish(id: SandboxId, inside: Readonly<Record<string, string>> = {}): Promise<void> {
    const relays = new Map<string, Relay>();
    try {
      for (const [port, address] of Object.entries(inside)) {
        const dial = () => this.#dial(id, port);
        const number = Number(address.split(":").at(-1));
        const taken = (error: NodeJS.ErrnoException) => {
          if (error.code === "EADDRINUSE" || error.code === "EACCES")
            return Relay.listen({ host: LOOPBACK, port: 0 }, dial);
          throw error;
        };
        relays.set(port, await Relay.listen({ host: LOOPBACK, port: number }, dial).catch(taken));
      }
    } catch (thrown) {
      await closeAll(relays);
      throw thrown;
    }
    await this.close(id);
    this.#relays.set(id, relays);
  }

  async close(id: SandboxId): Promise<void> {
    const relays = this.#relays.get(id);
    this.#relays.delete(id);
    if (relays !== undefined) await closeAll(relays);
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#relays.keys()].map((id) => this.close(id)));
  }

  async #dial(id: SandboxId, port: string) {
    const { vm, addressOf } = this.#options;
    const address = await addressOf(id, port);
    if (vm.dial !== undefined && address !== undefined) return await vm.dial(Number(address.split(":").at(-1)));
    throw new SandboxError("no_such_container", { message: `port ${port} of sandbox ${id} is not published` });
  }
}

/** Rejects ports where the driver cannot reach them. */
export function requireDial({ dial, projectId }: Pick<Vm, "dial" | "projectId">, ports: readonly unknown[] = []): void {
  if (ports.length === 0 || dial !== undefined) return;
  throw new SandboxError("no_published_ports", {
    message: `cannot publish ports ${ports.join(", ")} of project ${projectId}: this system's machines have no agent that forwards them`,
    hint: "omit container.ports, and reach the port through the sandbox itself",
  });
}

function portOf({ address }: Relay): number {
  return (address as AddressInfo).port;
}

async function closeAll(relays: ReadonlyMap<string, Relay>): Promise<void> {
  await Promise.all([...relays.values()].map((relay) => relay[Symbol.asyncDispose]()));
}
