import { parseImageReference } from "../../host/image-reference.ts";
import type { RegistryCredential } from "../../host/registry-credential.ts";
import { refusal, unreachable } from "./registry-error.ts";

const DOCKER_HUB = "docker.io";
const DOCKER_HUB_HOST = "registry-1.docker.io";
/** As for Docker's engine, registries on this host need no TLS. */
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/;
const CLIENT_ID = "sandpiper";

/** The pull half of a registry's API (OCI distribution), for one repository. */
export class RegistryClient {
  readonly #reference: string;
  readonly #base: string;
  readonly #repository: string;
  readonly #isPlain: boolean;
  readonly #credential: RegistryCredential | undefined;
  #authorization: string | undefined;

  constructor(reference: string, credential: RegistryCredential | undefined) {
    const { registry, name } = parseImageReference(reference);
    const path = name.startsWith(`${registry}/`) ? name.slice(registry.length + 1) : name;
    this.#reference = reference;
    this.#repository = registry === DOCKER_HUB && !path.includes("/") ? `library/${path}` : path;
    this.#isPlain = LOOPBACK.test(registry);
    const host = registry === DOCKER_HUB ? DOCKER_HUB_HOST : registry;
    this.#base = `${this.#isPlain ? "http" : "https"}://${host}/v2/${this.#repository}`;
    this.#credential = credential;
  }

  /** The answer to `GET /v2/<repository>/<path>`; throws for every status but 200. */
  async get(path: string, { accept, signal }: { readonly accept: string; readonly signal: AbortSignal }) {
    const send = () => this.#fetch(`${this.#base}/${path}`, { headers: this.#headers(accept), signal });
    let answer = await send();
    if (answer.status === 401) {
      await answer.body?.cancel();
      this.#authorization = await this.#authorize(answer.headers.get("www-authenticate") ?? "", signal);
      answer = await send();
    }
    if (answer.status === 200) return answer;
    await answer.body?.cancel();
    throw refusal(this.#reference, answer.status);
  }

  #headers(accept: string): Record<string, string> {
    return { accept, ...(this.#authorization === undefined ? {} : { authorization: this.#authorization }) };
  }

  /** Follows the registry's challenge: a login with each request, or a token from its token server. */
  async #authorize(challenge: string, signal: AbortSignal): Promise<string> {
    const credential = this.#credential;
    const [, scheme = "", rest = ""] = /^(\w+)\s*(.*)$/.exec(challenge) ?? [];
    const { realm, service } = Object.fromEntries(
      [...rest.matchAll(/(\w+)="([^"]*)"/g)].map(([, key = "", value]) => [key, value]),
    ) as Readonly<Record<string, string | undefined>>;
    if (scheme.toLowerCase() === "basic" && credential !== undefined) return basic(credential);
    const url = URL.parse(realm ?? "");
    // A credential must not leave this host unencrypted.
    const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && this.#isPlain);
    if (scheme.toLowerCase() !== "bearer" || url === null || !isSafe) throw refusal(this.#reference, 401);
    const query = { scope: `repository:${this.#repository}:pull`, ...(service === undefined ? {} : { service }) };
    const answer = await this.#fetch(...tokenRequest(url, query, { credential, signal }));
    if (!answer.ok) {
      await answer.body?.cancel();
      throw refusal(this.#reference, answer.status);
    }
    const { token, access_token } = (await answer.json()) as { token?: string; access_token?: string };
    return `Bearer ${token ?? access_token ?? ""}`;
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    try {
      return await fetch(url, init);
    } catch (thrown) {
      init.signal?.throwIfAborted();
      throw unreachable(this.#reference, thrown);
    }
  }
}

function basic({ username, password }: RegistryCredential): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

function tokenRequest(
  realm: URL,
  query: Readonly<Record<string, string>>,
  { credential, signal }: { readonly credential: RegistryCredential | undefined; readonly signal: AbortSignal },
): [string, RequestInit] {
  if (credential?.identitytoken !== undefined) {
    const form = {
      ...query,
      grant_type: "refresh_token",
      refresh_token: credential.identitytoken,
      client_id: CLIENT_ID,
    };
    return [realm.href, { method: "POST", body: new URLSearchParams(form), signal }];
  }
  for (const [name, value] of Object.entries(query)) realm.searchParams.set(name, value);
  const headers: Record<string, string> = credential === undefined ? {} : { authorization: basic(credential) };
  return [realm.href, { headers, signal }];
}
