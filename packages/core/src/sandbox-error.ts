export { SandboxError } from "@sandpiper/protocol";
