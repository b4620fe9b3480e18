import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { FlowReason, FlowRequest } from "@sandpiper/protocol";
import type { FlowOwner } from "./flow-sink.ts";

/** An allowed flow, before the node has connected to its host. */
export interface AllowedFlow extends FlowOwner {
  /** Null if the sandbox connected to an address. */
  readonly name: string | null;
  /** As the sandbox gave it if there is no name; a stand-in otherwise. */
  readonly address: string;
  readonly port: number;
}

export interface FlowOutcome {
  /** Null if the flow ended as its two ends wanted. */
  readonly reason: FlowReason | null;
  readonly requests?: readonly FlowRequest[] | undefined;
}

/** Stands between a sandbox and the host of a flow, for example to terminate TLS. */
export interface Interceptor {
  /** Asked once per allowed flow. */
  intercepts(flow: AllowedFlow): boolean;
  /**
   * Serves the flow until it ends; the engine then closes what is still open.
   *
   * @param guest the sandbox's end. The engine has checked its first bytes: a TLS server name is the flow's name.
   * @param dial connects to a checked address of the flow's name and port. It can be called more than once.
   */
  handle(flow: AllowedFlow, guest: Duplex, dial: Dial): Promise<FlowOutcome>;
}

export type Dial = (signal?: AbortSignal) => Promise<Socket>;

/** For nodes that intercept nothing. */
export const noInterceptor: Interceptor = {
  intercepts: () => false,
  handle: () => Promise.resolve({ reason: "intercept_failed" }),
};
