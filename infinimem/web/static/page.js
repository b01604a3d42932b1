// What a page does beyond links and forms; all of it works without.
"use strict";
