/** RFC 1123: 1 to 63 characters of a-z, 0-9 and `-`, which is not at either end. */
export const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
