import type { SecretUse } from "@sandpiper/protocol";

/** The authority alone, for programs that add it to their own list. */
export const AUTHORITY_FILE = "/etc/sandpiper/ca.crt";
/** The authorities of the image and the node's, for programs that read one list. */
export const BUNDLE_FILE = "/etc/sandpiper/ca-bundle.crt";

const readsBundle = [
  "SSL_CERT_FILE", // OpenSSL, Go, Ruby, PHP, uv
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "REQUESTS_CA_BUNDLE", // Python: requests
  "PIP_CERT",
  "CARGO_HTTP_CAINFO",
  "AWS_CA_BUNDLE",
  "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
  "HEX_CACERTS_PATH",
  "NIX_SSL_CERT_FILE",
];
const addsAuthority = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

const trustVariables = Object.fromEntries([
  ...readsBundle.map((name) => [name, BUNDLE_FILE]),
  ...addsAuthority.map((name) => [name, AUTHORITY_FILE]),
]);

/** The variables of every command in a sandbox with secrets: placeholders, and where to find the node's authority. */
export function secretVariables(uses: readonly SecretUse[]): Readonly<Record<string, string>> {
  return uses.length === 0 ? {} : { ...trustVariables, ...placeholderVariables(uses) };
}

/** The placeholders alone: a service may start before the authority is inside. */
export function placeholderVariables(uses: readonly SecretUse[]): Readonly<Record<string, string>> {
  return Object.fromEntries(uses.flatMap(({ env, placeholder }) => (env === null ? [] : [[env, placeholder]])));
}
