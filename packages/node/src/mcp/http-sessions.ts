import type { Clock } from "@sandpiper/core";
import { SandboxError } from "@sandpiper/protocol";
import type { CredentialWatch } from "../auth/credential-watch.ts";
import { type Conversation, HttpSession } from "./http-session.ts";

/** Who asks, and with what. */
export interface SessionOwner {
  readonly keyId: string;
  readonly credential: string;
}

export interface HttpSessionsOptions {
  /** Begins what a session is about; it may do what this credential may. */
  readonly converse: (credential: string) => Conversation;
  readonly credentials: CredentialWatch;
  readonly maxPerKey: number;
  readonly idleMs: number;
  readonly clock: Clock;
  readonly onError: (thrown: unknown) => void;
}

/** The sessions of this node. Each is its key's alone: for everybody else, whatever they may do, it is not there. */
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

  open({ keyId, credential }: SessionOwner): HttpSession {
    const { converse, credentials, maxPerKey, idleMs, clock, onError } = this.#options;
    const own = this.#sessions.values().filter((session) => session.keyId === keyId);
    if (own.reduce((count) => count + 1, 0) >= maxPerKey) throw tooMany(keyId, maxPerKey);
    const session: HttpSession = new HttpSession({
      keyId,
      conversation: converse(credential),
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

  /** Throws `not_found`, for one of another key too. */
  get(id: string, { keyId }: Pick<SessionOwner, "keyId">): HttpSession {
    const session = this.#sessions.get(id);
    if (session === undefined || session.keyId !== keyId) throw noSuchSession();
    return session;
  }

  /** Ends all of them, and waits for those that are ending already. */
  async close(): Promise<void> {
    for (const session of [...this.#sessions.values()]) void session.end();
    await Promise.all(this.#ending);
  }
}

function tooMany(keyId: string, maxPerKey: number): SandboxError {
  return new SandboxError("resource_exhausted", {
    reason: "session_limit",
    message: `the key ${keyId} has ${maxPerKey} MCP sessions already`,
    hint: "end one with DELETE, wait until one has been idle for long enough, or raise the node's mcp.maxSessions",
    details: { maxPerKey },
  });
}

function noSuchSession(): SandboxError {
  return new SandboxError("not_found", {
    reason: "no_such_session",
    message: "there is no such MCP session: it has ended, or is another node's",
    hint: "begin a new one with initialize",
  });
}
