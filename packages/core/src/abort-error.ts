export { abortError } from "@sandpiper/protocol";
