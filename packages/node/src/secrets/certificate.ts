import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from "node:crypto";
import { bits, explicit, implicit, integer, octets, oid, sequence, set, text, utcTime, yes } from "./der.ts";

const SERIAL_BYTES = 16;
/** The longest common name that X.509 allows. */
const MAX_COMMON_NAME = 64;

const VERSION_3 = explicit(0, integer(Buffer.from([2])));
const ECDSA_WITH_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));
const COMMON_NAME = oid("2.5.4.3");
const ORGANIZATION = oid("2.5.4.10");
const SUBJECT_KEY_ID = oid("2.5.29.14");
const KEY_USAGE = oid("2.5.29.15");
const SUBJECT_ALTERNATIVE_NAME = oid("2.5.29.17");
const BASIC_CONSTRAINTS = oid("2.5.29.19");
const AUTHORITY_KEY_ID = oid("2.5.29.35");
const EXTENDED_KEY_USAGE = oid("2.5.29.37");
const SERVER_AUTHENTICATION = oid("1.3.6.1.5.5.7.3.1");
const DNS_NAME = 2;

/** Bits of the key usage, with the number of unused bits behind them. */
const SIGNS_CERTIFICATES = bits(Buffer.from([0x06]), 1);
const SIGNS_HANDSHAKES = bits(Buffer.from([0x80]), 7);

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export interface Issuer {
  readonly name: string;
  readonly privateKey: KeyObject;
}

/** A certificate of an authority, signed by itself, as PEM. Equal keys and names are the same authority for clients. */
export function authorityCertificate(issuer: Issuer, validity: Validity): string {
  const publicKey = publicKeyOf(issuer.privateKey);
  const keyId = keyIdOf(publicKey);
  return certificate(issuer, validity, {
    subject: nameOf(issuer.name),
    publicKey,
    // Stable, because clients may compare the copies of several nodes.
    serial: keyId.subarray(0, SERIAL_BYTES),
    extensions: [
      critical(BASIC_CONSTRAINTS, sequence(yes())),
      critical(KEY_USAGE, SIGNS_CERTIFICATES),
      extension(SUBJECT_KEY_ID, octets(keyId)),
    ],
  });
}

export interface ServerCertificateOptions {
  readonly issuer: Issuer;
  readonly publicKey: Uint8Array;
  readonly validity: Validity;
}

/** A certificate of a server with this host name, as PEM. */
export function serverCertificate(host: string, { issuer, publicKey, validity }: ServerCertificateOptions): string {
  return certificate(issuer, validity, {
    subject: sequence(set(sequence(COMMON_NAME, text(host.slice(0, MAX_COMMON_NAME))))),
    publicKey,
    serial: randomBytes(SERIAL_BYTES),
    extensions: [
      critical(BASIC_CONSTRAINTS, sequence()),
      critical(KEY_USAGE, SIGNS_HANDSHAKES),
      extension(EXTENDED_KEY_USAGE, sequence(SERVER_AUTHENTICATION)),
      extension(SUBJECT_KEY_ID, octets(keyIdOf(publicKey))),
      extension(AUTHORITY_KEY_ID, sequence(implicit(0, keyIdOf(publicKeyOf(issuer.privateKey))))),
      extension(SUBJECT_ALTERNATIVE_NAME, sequence(implicit(DNS_NAME, Buffer.from(host)))),
    ],
  });
}

/** The subject's public key info, as DER. */
export function publicKeyOf(privateKey: KeyObject): Buffer {
  return createPublicKey(privateKey).export({ type: "spki", format: "der" });
}

interface Content {
  readonly subject: Uint8Array;
  readonly publicKey: Uint8Array;
  readonly serial: Uint8Array;
  readonly extensions: readonly Uint8Array[];
}

function certificate(
  { name, privateKey }: Issuer,
  { notBefore, notAfter }: Validity,
  { subject, publicKey, serial, extensions }: Content,
): string {
  const content = sequence(
    VERSION_3,
    integer(serial),
    ECDSA_WITH_SHA256,
    nameOf(name),
    sequence(utcTime(notBefore), utcTime(notAfter)),
    subject,
    publicKey,
    explicit(3, sequence(...extensions)),
  );
  const signed = sequence(content, ECDSA_WITH_SHA256, bits(sign("sha256", content, privateKey)));
  const lines = signed.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

/** The name of the file in which OpenSSL looks for the authority, without its suffix. */
export function subjectHash(name: string): string {
  const canonical = Buffer.concat(partsOf("sandpiper", name.toLowerCase()));
  return createHash("sha1").update(canonical).digest().readUInt32LE(0).toString(16).padStart(8, "0");
}

function nameOf(name: string): Buffer {
  return sequence(...partsOf("Sandpiper", name));
}

function partsOf(organization: string, name: string): readonly Buffer[] {
  return [set(sequence(ORGANIZATION, text(organization))), set(sequence(COMMON_NAME, text(name)))];
}

function extension(id: Uint8Array, content: Uint8Array): Buffer {
  return sequence(id, octets(content));
}

function critical(id: Uint8Array, content: Uint8Array): Buffer {
  return sequence(id, yes(), octets(content));
}

function keyIdOf(publicKey: Uint8Array): Buffer {
  return createHash("sha1").update(publicKey).digest();
}
