import type { Clock } from "@sandpiper/core";
import { SandboxError } from "@sandpiper/protocol";
import type { CredentialWatch } from "../auth/credential-watch.ts";
import { type Conversation, HttpSession } from "./http-session.ts";

export interface SessionOwner {
  readonly keyId: string;
  readonly credential: string;
  /** The origin at which the caller reaches the node. */
  readonly origin: string;
}

export type Converse = (credential: string, origin: string) => Conversation;

export interface HttpSessionsOptions {
  /** Creates a session's conversation, which has the rights of this credential. */
  readonly converse: Converse;
  readonly credentials: CredentialWatch;
  readonly maxPerKey: number;
  readonly idleMs: number;
  readonly clock: Clock;
  readonly onError: (thrown: unknown) => void;
}

/** The MCP sessions of this node. Only the key that opened a session can use it; for other keys it does not exist. */
export class HttpSessions {
  readonly #options: HttpSessionsOptions;
  readonly #sessions = new Map<string, HttpSession>();
  readonly #ending = new Set<Promise<void>>();

  constructor(options: HttpSessionsOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#sessions.size;
  }

  open({ keyId, credential, origin }: SessionOwner): HttpSession {
    const { converse, credentials, maxPerKey, idleMs, clock, onError } = this.#options;
    const own = this.#sessions.values().filter((session) => session.keyId === keyId);
    if (own.reduce((count) => count + 1, 0) >= maxPerKey) throw tooMany(keyId, maxPerKey);
    const session: HttpSession = new HttpSession({
      keyId,
      conversation: converse(credential, origin),
      idleMs,
      clock,
      onEnd: (ended) => {
        watched[Symbol.dispose]();
        this.#sessions.delete(session.id);
        this.#ending.add(ended);
        ended.then(() => this.#ending.delete(ended));
      },
      onError,
    });
    const watched = credentials.watch(credential, () => void session.end());
    this.#sessions.set(session.id, session);
    return session;
  }

  /** Throws `not_found`, also for a session of another key. */
  get(id: string, { keyId }: Pick<SessionOwner, "keyId">): HttpSession {
    const session = this.#sessions.get(id);
    if (session === undefined || session.keyId !== keyId) throw noSuchSession();
    return session;
  }

  /** Ends all sessions, and waits for those that are already ending. */
  async close(): Promise<void> {
    for (const session of [...this.#sessions.values()]) void session.end();
    await Promise.all(this.#ending);
  }
}

function tooMany(keyId: string, maxPerKey: number): SandboxError {
  return new SandboxError("session_limit", {
    message: `key ${keyId} already has the maximum of ${maxPerKey} MCP sessions`,
    details: { maxPerKey },
  });
}

function noSuchSession(): SandboxError {
  return new SandboxError("no_such_session", {
    message: "no such MCP session: it has ended, or belongs to another node",
  });
}
