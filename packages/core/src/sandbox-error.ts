export { SandboxError, type SandboxErrorOptions } from "@sandpiper/protocol";
