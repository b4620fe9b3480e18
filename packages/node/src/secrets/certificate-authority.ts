import { createECDH, createHash, createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import type { Clock } from "@sandpiper/core";
import type { Keyring } from "../auth/keyring.ts";
import { authorityCertificate, type Issuer, publicKeyOf, serverCertificate, subjectHash } from "./certificate.ts";

const PURPOSE = "secrets authority";
const CURVE = "prime256v1";
const DAY_MS = 86_400_000;
/** Fixed, so that all nodes of a cluster make the same certificate. */
const AUTHORITY_VALIDITY = { notBefore: new Date("2020-01-01T00:00:00Z"), notAfter: new Date("2049-12-31T00:00:00Z") };
/** The clock of a sandbox that was just restored may be behind. */
const BACKDATED_MS = 30 * DAY_MS;
const LEAF_MS = 30 * DAY_MS;
const RENEWED_BEFORE_END_MS = 7 * DAY_MS;
const MAX_CACHED = 1000;

/** A certificate as PEM, and the name under which OpenSSL looks for it. */
export interface Anchor {
  readonly certificate: string;
  readonly hash: string;
}

interface Leaf {
  readonly context: SecureContext;
  readonly renewAt: number;
}

/**
 * The authority that sandboxes with secrets trust. Its key is derived from the secret of the node or cluster, so it is the same on
 * every node and is stored nowhere.
 */
export class CertificateAuthority {
  /** What a sandbox must trust: one for each secret that is in use. */
  readonly anchors: readonly Anchor[];
  readonly #issuer: Issuer;
  readonly #clock: Clock;
  readonly #leafKey = generateKeyPairSync("ec", { namedCurve: CURVE }).privateKey;
  readonly #leaves = new Map<string, Leaf>();

  constructor({ keyring, clock }: { readonly keyring: Keyring; readonly clock: Clock }) {
    this.#clock = clock;
    const issuers = keyring.ids.map((secretId) => ({
      name: `Sandpiper secrets ${secretId}`,
      privateKey: privateKeyFrom(keyring.key(PURPOSE, { secretId }) as Buffer),
    }));
    this.anchors = issuers.map((issuer) => ({
      certificate: authorityCertificate(issuer, AUTHORITY_VALIDITY),
      hash: subjectHash(issuer.name),
    }));
    // While a secret is being replaced, running processes may trust only the authority of the earlier one.
    this.#issuer = issuers.at(-1) as Issuer;
  }

  /** All as one PEM text. */
  get certificates(): string {
    return this.anchors.map(({ certificate }) => certificate).join("");
  }

  /** The key and the certificate for a TLS server with this host name. */
  contextFor(host: string): SecureContext {
    const now = this.#clock.now().getTime();
    const known = this.#leaves.get(host);
    const leaf = known !== undefined && now < known.renewAt ? known : this.#issue(host, now);
    // The most recently used one is last.
    this.#leaves.delete(host);
    this.#leaves.set(host, leaf);
    const [oldest] = this.#leaves.keys();
    if (this.#leaves.size > MAX_CACHED && oldest !== undefined) this.#leaves.delete(oldest);
    return leaf.context;
  }

  #issue(host: string, now: number): Leaf {
    const validity = { notBefore: new Date(now - BACKDATED_MS), notAfter: new Date(now + LEAF_MS) };
    const publicKey = publicKeyOf(this.#leafKey);
    const cert = serverCertificate(host, { issuer: this.#issuer, publicKey, validity });
    const key = this.#leafKey.export({ type: "pkcs8", format: "pem" });
    return { context: createSecureContext({ key, cert }), renewAt: now + LEAF_MS - RENEWED_BEFORE_END_MS };
  }
}

/** The private key whose number is the seed; of the few seeds that are no valid number, its hash. */
function privateKeyFrom(seed: Buffer): KeyObject {
  const curve = createECDH(CURVE);
  try {
    curve.setPrivateKey(seed);
  } catch {
    return privateKeyFrom(createHash("sha256").update(seed).digest());
  }
  const point = curve.getPublicKey();
  const half = (point.length - 1) / 2;
  const [x, y] = [point.subarray(1, 1 + half), point.subarray(1 + half)].map((bytes) => bytes.toString("base64url"));
  return createPrivateKey({
    format: "jwk",
    key: { kty: "EC", crv: "P-256", d: seed.toString("base64url"), x: x as string, y: y as string },
  });
}
