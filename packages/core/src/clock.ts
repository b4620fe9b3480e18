export { type Clock, systemClock } from "@sandpiper/protocol";
