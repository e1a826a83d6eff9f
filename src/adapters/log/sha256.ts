import { hash } from 'node:crypto';
import { type Digest, digest } from '../../domain/log/model.js';

export function sha256(text: string): Digest {
  return digest(hash('sha256', text, 'hex'));
}
