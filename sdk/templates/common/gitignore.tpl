/build*/
