declare const brand: unique symbol;

/** A scalar that only its smart constructor makes. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };
