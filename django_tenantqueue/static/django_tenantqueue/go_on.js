// Lets what takes longer than one request go on; without JavaScript there is a button.
"use strict";
document.querySelector("form.tq-ask").submit();
