import type { Clock } from "@sandpiper/core";
import type { Logger } from "pino";
import type { Authenticator } from "../auth/principal.ts";
import type { Locator } from "../handoff/locator.ts";
import type { SocketRelayOptions } from "../forward/socket-relay.ts";
import type { EventLog } from "../records/event-log.ts";
import type { SandboxService } from "../sandboxes/sandbox-service-port.ts";
import type { AuditSink } from "./socket-audit.ts";

/** What passes streams on to other nodes. */
interface SocketCluster extends Pick<SocketRelayOptions, "whereabouts" | "proof" | "silenceMs"> {
  readonly keys: {
    /** Asks the store about a credential that is not known here. */
    learn(credential: string | undefined): Promise<void>;
  };
}

/** What WebSockets need of the node. */
export interface SocketDependencies {
  readonly service: SandboxService;
  readonly locator: Locator;
  /** Streams about sandboxes of other nodes are relayed to these; nothing is unless given. */
  readonly cluster?: SocketCluster | undefined;
  readonly authenticator: Authenticator;
  readonly events: EventLog;
  readonly logger: Logger;
  /** Who did what is not kept unless given. */
  readonly audit?: AuditSink | undefined;
  /** The node takes no new connections any more. */
  readonly isStopping: () => boolean;
  /** It makes no new sandboxes any more. */
  readonly isDraining?: (() => boolean) | undefined;
  /** Pages of other origins that may connect, such as "https://console.example.com"; none unless given. */
  readonly corsOrigins?: readonly string[] | undefined;
  readonly clock?: Clock | undefined;
  readonly randomUuid?: (() => string) | undefined;
}
