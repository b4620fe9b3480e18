import { type Admit, RefusedRequest } from "./exchange.ts";
import { hideSecrets, injectSecrets, type UsableSecret } from "./inject.ts";
import type { Destination } from "./secret-host.ts";

/** Bounds what the record of a long-lived connection takes. */
const MAX_RECORDED = 1000;
const MAX_PATH_CHARS = 1024;

export interface RequestRecord {
  readonly method: string;
  readonly path: string;
  /** Null until the server has answered. */
  status: number | null;
}

export interface AdmitOptions extends Destination {
  /** The secrets for this destination as they are now: each request gets the newest value. */
  readonly secrets: () => Promise<readonly UsableSecret[]>;
  /** Receives each request as the sandbox sent it, so with placeholders. */
  readonly requests: RequestRecord[];
}

/** Admits requests that name the host of their connection: a secret must not reach another host behind the same server. */
export function admitRequests({ name, port, secrets, requests }: AdmitOptions): Admit {
  return async (request) => {
    const { method, path, authority } = request;
    if (!namesHost(authority, { name, port })) {
      throw new RefusedRequest(421, `this connection is to ${name}, but the request names another host`);
    }
    // A server that supports it repeats the headers that it gets.
    if (/^(?:trace|track)$/i.test(method)) throw new RefusedRequest(405, `${method} would reveal the secret`);
    if (!path.startsWith("/") && path !== "*") throw new RefusedRequest(400, "the request has no path");
    const usable = await secrets();
    const record: RequestRecord = { method, path: recordedPath(path), status: null };
    if (requests.length < MAX_RECORDED) requests.push(record);
    return {
      ...injectSecrets(request, usable),
      answerHeaders: (headers) => hideSecrets(headers, usable),
      answered: (status) => {
        record.status = status;
      },
    };
  };
}

function namesHost(authority: string | undefined, { name, port }: Destination): boolean {
  const given = authority?.toLowerCase();
  return given === name || given === `${name}:${port}`;
}

/** Without the query, which may contain credentials of the code inside. */
function recordedPath(path: string): string {
  return (path.split("?")[0] ?? "").slice(0, MAX_PATH_CHARS);
}
