/** RFC 1123 label or subdomain, as Kubernetes names objects. */
export const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;
/** Plural of a resource: `volumes`. */
export const PLURAL = /^[a-z][a-z0-9-]{0,62}$/;
/** The group and version of what DELETE_CR names. */
export const OWN_GROUP_VERSION = 'v1.runos.com';
