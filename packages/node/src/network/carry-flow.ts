import type { Socket } from "node:net";
import type { Clock, GuestFlow, Tunnel } from "@sandpiper/core";
import type { FlowReason } from "@sandpiper/protocol";
import { type IsOwnHost, inspected, RefusedHost } from "./first-bytes.ts";
import type { AllowedFlow, Dial, FlowOutcome, Interceptor } from "./interceptor.ts";
import { pump } from "./pump.ts";
import { TunnelDuplex } from "./tunnel-duplex.ts";

export interface CarryOptions {
  readonly guest: Pick<GuestFlow, "accept">;
  readonly flow: AllowedFlow;
  readonly dial: Dial;
  readonly interceptor: Interceptor;
  readonly clock: Clock;
  /** Whether the sandbox may state this host inside the connection. */
  readonly isOwnHost: IsOwnHost;
  /** Count the bytes of a direction and return for how long it must pause. */
  readonly countSent: (bytes: number) => number;
  readonly countReceived: (bytes: number) => number;
  /** Cuts the flow; its reason is a `FlowReason`. */
  readonly signal: AbortSignal;
}

/** Connects an allowed flow and serves it until it ends. Rejects if it cannot be connected. */
export function carryFlow(options: CarryOptions): Promise<FlowOutcome> {
  return options.interceptor.intercepts(options.flow) ? intercept(options) : connect(options);
}

async function connect(options: CarryOptions): Promise<FlowOutcome> {
  const { guest, dial, signal } = options;
  // Both at once: the guest's program has been connected since before the flow was announced.
  const [dialed, accepted] = await Promise.allSettled([dial(signal), guest.accept({ lendsMemory: true })]);
  if (dialed.status === "rejected" || accepted.status === "rejected") {
    if (dialed.status === "fulfilled") dialed.value.destroy();
    if (accepted.status === "fulfilled") accepted.value.close();
    if (dialed.status === "rejected") throw dialed.reason;
    return { reason: "reset" };
  }
  const [socket, tunnel]: [Socket, Tunnel] = [dialed.value, accepted.value];
  return {
    reason: await pump({ ...options, tunnel, socket, outgoing: inspected(tunnel.readable, options.isOwnHost) }),
  };
}

async function intercept(options: CarryOptions): Promise<FlowOutcome> {
  const { guest, flow, interceptor, signal } = options;
  let tunnel: Tunnel;
  try {
    tunnel = await guest.accept();
  } catch {
    return { reason: "reset" };
  }
  const duplex = new TunnelDuplex({ ...options, tunnel, outgoing: inspected(tunnel.readable, options.isOwnHost) });
  let refused: FlowReason | undefined;
  duplex.on("error", (error) => {
    if (error instanceof RefusedHost) refused = error.reason;
  });
  const stop = () => duplex.destroy();
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  const dial: Dial = (own) => options.dial(own === undefined ? signal : AbortSignal.any([own, signal]));
  const cutReason = () => refused ?? (signal.aborted ? (signal.reason as FlowReason) : undefined);
  try {
    const outcome = await interceptor.handle(flow, duplex, dial);
    return { ...outcome, reason: cutReason() ?? outcome.reason };
  } catch {
    return { reason: cutReason() ?? "intercept_failed" };
  } finally {
    signal.removeEventListener("abort", stop);
    duplex.destroy();
  }
}
