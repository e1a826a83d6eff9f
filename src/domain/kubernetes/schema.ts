import { z } from 'zod';
import { decodeBase64 } from '../link/base64.js';
import { decodeUtf8 } from '../link/utf8.js';

/** YAML in base64 inside of the payload. */
export const manifest = z.string('base64 of YAML').transform((text, context) => {
  const bytes = decodeBase64(text);
  const yaml = bytes === undefined ? undefined : decodeUtf8(bytes);
  if (yaml !== undefined) return yaml;
  context.addIssue({ code: 'custom', message: bytes === undefined ? 'no padded base64' : 'no UTF-8 in the base64' });
  return z.NEVER;
});

/** What stands in helm's argv: no leading dash, so that it is no flag. */
export const helmName = z
  .string('text')
  .regex(/^[a-z0-9._][a-z0-9._-]{0,252}$/, 'a name of a-z, 0-9, ., _ and -, not with - first');

/** Of a list of repositories, which is not kept here: its name is checked and not used. */
export const repositoryName = helmName.or(z.literal('')).nullish();
