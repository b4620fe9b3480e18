import type { GuestFlow } from "../network/guest-flow.ts";
import type { GuestQuery, NetworkHandler } from "../network/serve-network.ts";

/** The ports of a host outside, each with its behaviour. */
export const ECHO_PORT = 7;
export const REFUSED_PORT = 19;
/** Speaks first, then ends its direction and counts what still comes. */
export const GREETER_PORT = 22;

/** What sandboxes reach: one host with every name but `nowhere.example`, and with every address. */
export class OutsideWorld implements NetworkHandler {
  readonly flows: GuestFlow[] = [];
  readonly names: string[] = [];
  /** What the greeter received after its greeting. */
  heard = "";

  onFlow(flow: GuestFlow): void {
    this.flows.push(flow);
    if (flow.port === REFUSED_PORT) flow.refuse();
    // A program may end its connection at any time.
    else this.#serve(flow).catch(() => {});
  }

  onQuery(query: GuestQuery): void {
    this.names.push(query.name);
    query.answer(query.name === "nowhere.example" ? "name_error" : "stand_in");
  }

  onDatagram(): void {}

  async #serve(flow: GuestFlow): Promise<void> {
    const tunnel = await flow.accept();
    if (flow.port === GREETER_PORT) {
      await tunnel.write(new TextEncoder().encode("welcome\n"));
      await tunnel.end();
      for await (const bytes of tunnel.readable) this.heard += new TextDecoder().decode(bytes);
    } else {
      for await (const bytes of tunnel.readable) await tunnel.write(bytes);
      await tunnel.end();
    }
    await tunnel.closed;
  }
}
