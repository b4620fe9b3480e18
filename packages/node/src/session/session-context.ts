import type { Logger } from "pino";
import type { Principal } from "../auth/principal.ts";
import type { MessageSocket } from "../socket/message-socket.ts";
import type { SocketAudit } from "../socket/socket-audit.ts";
import type { SocketDependencies } from "../socket/socket-dependencies.ts";
import type { SessionRegistry } from "./session-registry.ts";

/** What a session needs. */
export interface SessionContext {
  readonly socket: MessageSocket;
  readonly principal: Principal;
  readonly dependencies: Pick<SocketDependencies, "sandboxes" | "access" | "locator" | "ownership" | "clock">;
  readonly sessions: SessionRegistry;
  readonly logger: Logger;
  readonly audit: SocketAudit;
}
